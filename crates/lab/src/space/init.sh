# Makes a fresh set of namespaces into a machine of its own, and holds it. Arguments: name, tree, share.
set -e
name=$1 tree=${2%/} share=$3
hostname "$name"
if [ -n "$tree" ]; then
  # `ip netns exec` wants its root to be a mount point.
  mount --bind "$tree" "$tree"
  mount --rbind /dev "$tree/dev"
  mount --bind "$share" "$tree/share"
fi
mount -t proc proc "$tree/proc"
mount -t sysfs sys "$tree/sys"
# Its control groups are a part of the host's; another machine has the same names in a part of its own.
mount -t cgroup2 cgroup2 "$tree/sys/fs/cgroup"
mount --bind "$(mktemp -d "$tree/sys/fs/cgroup/$name.XXXXXX")" "$tree/sys/fs/cgroup"
for dir in run tmp var/tmp var/log var/lib/frr etc/frr etc/selvedge etc/cni opt/cni; do
  mount -t tmpfs tmpfs "$tree/$dir"
done
# What is kept here survives a reboot of the machine.
mkdir -p "$tree/share/state/$name"
mount --bind "$tree/share/state/$name" "$tree/var/lib/selvedge"
ip link set lo up
# Orphans must not stay behind as zombies: a daemon that was killed would look alive.
exec chroot "$tree/" sh -ec '
  mkdir -p /run/netns /run/frr /share/logs
  chmod 1777 /tmp /share/logs
  chown frr:frr /run/frr /etc/frr /var/lib/frr
  echo ready
  exec perl -e "\$SIG{CHLD} = q(IGNORE); sleep while 1"'
