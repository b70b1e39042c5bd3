#!/bin/sh
# Makes the devices that EVPN in the host's own network needs: FRR announces VNIs whose VXLAN devices are there. Not for production as it
# is: it runs once, and nothing watches what it made.
#
# Usage: host-evpn.sh up VTEP [SEGMENT]...    makes what is not there
#        host-evpn.sh down [SEGMENT]...       removes it
#
# VTEP is the address of the node that VXLAN packets come from; it becomes an address of lo. A SEGMENT is one of
#   l3:VNI:VRF:TABLE              a VRF with a routing table, and its layer 3 VNI
#   l2:VNI                        a layer 2 VNI: a bridge
#   l2:VNI:VRF:ADDRESS/LENGTH     a layer 2 VNI whose bridge has an address in a VRF that was named before
#
# The devices of VNI 1000 are br1000 (bridge) and vx1000 (VXLAN): one VXLAN device for each VNI, which every FRR since 8.4 understands.
set -eu

port=4789

there() {
  ip link show dev "$1" >/dev/null 2>&1
}

# A bridge that learns nothing from VXLAN, because FRR tells it where addresses are, and answers ARP and ND by itself where FRR knows.
segment() {
  vni=$1 master=$2
  if ! there "br$vni"; then
    ip link add "br$vni" type bridge
    ip link set "br$vni" addrgenmode none
  fi
  [ -z "$master" ] || ip link set "br$vni" master "$master"
  if ! there "vx$vni"; then
    ip link add "vx$vni" type vxlan id "$vni" local "$vtep" dstport "$port" nolearning
    ip link set "vx$vni" addrgenmode none
  fi
  ip link set "vx$vni" master "br$vni"
  bridge link set dev "vx$vni" learning off neigh_suppress on
  ip link set "br$vni" up
  ip link set "vx$vni" up
}

make() {
  kind=$(echo "$1" | cut -d: -f1)
  number=$(echo "$1" | cut -d: -f2)
  vrf=$(echo "$1" | cut -s -d: -f3)
  rest=$(echo "$1" | cut -s -d: -f4-)
  case $kind in
  l3)
    there "$vrf" || ip link add "$vrf" type vrf table "$rest"
    ip link set "$vrf" up
    segment "$number" "$vrf"
    ;;
  l2)
    segment "$number" "$vrf"
    [ -z "$rest" ] || ip address replace "$rest" dev "br$number"
    ;;
  *)
    echo "host-evpn.sh: $1 is no segment" >&2
    exit 2
    ;;
  esac
}

remove() {
  kind=$(echo "$1" | cut -d: -f1)
  number=$(echo "$1" | cut -d: -f2)
  for device in "vx$number" "br$number"; do
    ! there "$device" || ip link delete "$device"
  done
  if [ "$kind" = l3 ]; then
    vrf=$(echo "$1" | cut -d: -f3)
    ! there "$vrf" || ip link delete "$vrf"
  fi
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
up)
  vtep=${1:?host-evpn.sh up wants the address of the VTEP}
  shift
  echo 1 >/proc/sys/net/ipv4/ip_forward
  echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
  case $vtep in
  *:*) ip address replace "$vtep/128" dev lo ;;
  *) ip address replace "$vtep/32" dev lo ;;
  esac
  for one in "$@"; do
    make "$one"
  done
  ;;
down)
  for one in "$@"; do
    remove "$one"
  done
  ;;
*)
  sed -n '/^# Usage/,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
