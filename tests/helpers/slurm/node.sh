#!/usr/bin/env bash
# A real Slurm of one node for tests: munged, slurmctld and slurmd of Debian's slurm-wlm and munge, as root, all their
# files in one folder but for two links in /etc/slurm, which stop takes away. The node has all cores and one fake
# GPU, /dev/null.
#   node.sh start DIR     exits with 3 where there is a cluster already
#   node.sh stop DIR
# No accounting database: job states come from squeue, ended jobs are listed in DIR/jobs.txt.
set -euo pipefail
command=$1
dir=$(readlink -m "$2")

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start() {
    local host cores memory other
    other=$(dirname "$(readlink -m /etc/slurm/slurm.conf)")
    if [ -L /etc/slurm/slurm.conf ] && ! pkill -0 -F "$other/slurmctld.pid" 2>/dev/null; then
        rm /etc/slurm/{slurm,gres}.conf # links of a test that was killed
    fi
    if [ -e /etc/slurm/slurm.conf ] && [ "$other" != "$dir" ]; then
        echo "node.sh: this machine belongs to a cluster already (/etc/slurm/slurm.conf)" >&2
        exit 3
    fi
    host=$(hostname -s)
    cores=$(nproc)
    memory=$(awk '/MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
    mkdir -p "$dir"/{state,spool,munge}
    chmod 755 "$dir" "$dir"/{state,spool,munge}
    head -c 1024 /dev/urandom >"$dir/munge/key"
    chmod 600 "$dir/munge/key"
    munged --force --socket="$dir/munge/socket" --key-file="$dir/munge/key" --pid-file="$dir/munge/pid" \
        --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
    cat >"$dir/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$dir/jobs.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0
GresTypes=gpu
MinJobAge=7200
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores RealMemory=$memory Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE OverSubscribe=NO State=UP
END
    echo "NodeName=$host Name=gpu File=/dev/null" >"$dir/gres.conf"
    mkdir -p /etc/slurm # jobs look there: the executor plugin takes SLURM_CONF out of their environment
    ln -sf "$dir"/{slurm,gres}.conf /etc/slurm/
    slurmctld
    slurmd
    for _ in $(seq 100); do
        [ "$(sinfo -h -o %t 2>/dev/null)" = idle ] && return
        sleep 0.2
    done
    echo "node.sh: the node did not come up, see $dir/*.log" >&2
    tail -n 5 "$dir"/*.log >&2
    exit 1
}

stop() {
    scancel --state=PENDING --user=root 2>/dev/null || true
    scancel --signal=KILL --full --user=root 2>/dev/null || true
    for _ in $(seq 50); do # slurmd must see its jobs off
        if [ -z "$(timeout 2 squeue -h 2>/dev/null)" ]; then break; fi
        sleep 0.2
    done
    for name in slurmd.pid slurmctld.pid munge/pid; do
        if [ -f "$dir/$name" ]; then kill "$(cat "$dir/$name")" 2>/dev/null || true; fi
    done
    for name in slurm gres; do
        if [ "$(readlink -m /etc/slurm/$name.conf)" = "$dir/$name.conf" ]; then rm /etc/slurm/$name.conf; fi
    done
}

case $command in
start) start ;;
stop) stop ;;
*) echo "usage: node.sh start DIR | stop DIR" >&2 && exit 2 ;;
esac
