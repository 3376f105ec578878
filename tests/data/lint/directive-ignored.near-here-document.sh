#!/bin/bash
cat > inner.sh <<'EOF'
#!/bin/bash
#SBATCH --nodes=2
srun ./app
EOF
sbatch inner.sh
# site: unknown
