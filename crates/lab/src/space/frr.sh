# Starts FRR's daemons as one named instance and loads its configuration. Arguments: instance, name for the logs.
instance=$1 name=$2
mkdir -p "/run/frr/$instance" "/var/lib/frr/$instance"
touch "/etc/frr/$instance/vtysh.conf"
chown -R frr:frr "/etc/frr/$instance" "/run/frr/$instance" "/var/lib/frr/$instance"
for daemon in mgmtd zebra bgpd bfdd staticd; do
  # FRR 8 has no mgmtd.
  [ -x "/usr/lib/frr/$daemon" ] || continue
  "/usr/lib/frr/$daemon" -d -N "$instance" --log "file:/share/logs/$name-$daemon.log" --log-level informational
done
vtysh -N "$instance" -b
