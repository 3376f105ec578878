#!/bin/bash
cat > run.sh <<'EOF'
#!/bin/bash
python train.py | tee log
echo $?
EOF
srun ./run.sh
# site: unknown
# expect: 4 status-lost-in-pipe
