EXTRA="--precison fp32 --log-every 5"
