"""Outline tables of Cilium's network policies (cilium.io/v2, Cilium 1.18), as far as policies by name need them."""

TABLE = """
CiliumNetworkPolicy
  string apiVersion kind
  ObjectMeta metadata
  CiliumRule spec
  []CiliumRule specs
  any status
CiliumRule
  string description
  LabelSelector endpointSelector nodeSelector
  CiliumDefaultDeny enableDefaultDeny
  []CiliumEgressRule egress egressDeny
  any ingress ingressDeny labels log
CiliumDefaultDeny
  bool egress ingress
CiliumEgressRule
  []LabelSelector toEndpoints toNodes toRequires
  []CiliumFQDN toFQDNs
  []CiliumPortRule toPorts
  []string toCIDR toEntities
  any toCIDRSet toServices toGroups icmps authentication
CiliumFQDN
  string matchName matchPattern
CiliumPortRule
  []CiliumPort ports
  CiliumL7Rules rules
  []string serverNames
  any terminatingTLS originatingTLS listener
CiliumPort
  string port protocol
  int endPort
CiliumL7Rules
  []CiliumFQDN dns
  any http kafka l7
  string l7proto
"""
