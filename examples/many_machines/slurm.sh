#!/bin/bash
# Trains on four machines with Slurm: sbatch examples/many_machines/slurm.sh
# The same file goes on with the run after it was cut off: --resume starts it if there is none.
#SBATCH --job-name=knowformer
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
# One kind of processor, so that all round alike; the feature's name is the cluster's own.
##SBATCH --constraint=icelake

set -euo pipefail

GRAPH=${GRAPH:-facts.tsv}
RUN=${RUN:-runs/mine}
FIRST=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)

# A process for every four cores; the graph is read, and the run written, on the first machine alone.
srun torchrun \
    --nnodes "$SLURM_JOB_NUM_NODES" \
    --nproc-per-node 4 \
    --rdzv-backend c10d \
    --rdzv-id "$SLURM_JOB_ID" \
    --rdzv-endpoint "$FIRST:29400" \
    -m knowformer train "$GRAPH" --out "$RUN" --resume --threads 4
