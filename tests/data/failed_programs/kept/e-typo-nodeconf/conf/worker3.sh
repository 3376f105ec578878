EXTRA="--precision fp32 --log-every 5"
