#!/bin/bash
cat > job.sh <<'EOF'
#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH -partition=gpu
srun ./app
EOF
sbatch job.sh
cat <<-EOF | sbatch
	#!/bin/bash
	#SBATCH --mem=64
	#SBATCH --nodes=two
	srun ./app
EOF
# site: unknown
# expect: 5 option-value-refused
# expect: 11 unit-missing
# expect: 12 option-value-refused
