# year,hour,value  ->  month mean
{ m = int($2 / 730); s[m] += $3; c[m]++ }
END { for (m in s) printf "%d %.3f\n", m, s[m] / c[m] }
