# The start of a guest: mounts, modules, the management network; then the service that runs the lab's commands.
# `name`, `address`, `port` and `modules` come from the kernel's command line.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/frr HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for dir in /dev/shm /run /tmp /var/tmp; do mount -t tmpfs tmpfs $dir; done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# A tree without a kernel of its own has the modules of another.
[ -d "/lib/modules/$(uname -r)" ] || mount -t hostfs none /lib/modules -o "hostfs=$modules" || mount -t hostfs none /lib/modules -o "$modules"
modprobe -qa ipv6 8021q vrf dummy vxlan bridge veth macvlan
hostname "$name"
# What is written to the share reaches the machine at once, not half a minute later.
echo 50 > /proc/sys/vm/dirty_writeback_centisecs
echo 50 > /proc/sys/vm/dirty_expire_centisecs
ip link set lo up
ip link add name mgmt address "$(cat /sys/class/net/vec0/address)" type bridge mcast_snooping 0
ip link set vec0 master mgmt up
ip address add "$address" dev mgmt
ip link set mgmt up
echo "set up $(cut -d" " -f1 /proc/uptime) s after power-on"
exec perl /share/serve.pl "$port"
