"""Outline tables of the builtin kinds other than pods and jobs."""

TABLE = """
OwnerReference atomic
  string apiVersion kind name uid
  bool blockOwnerDeletion controller
ManagedFieldsEntry
  string apiVersion fieldsType manager operation subresource
  any fieldsV1
  time time
ObjectMeta
  string name generateName namespace resourceVersion selfLink uid
  time creationTimestamp deletionTimestamp
  int deletionGracePeriodSeconds generation
  {}string annotations labels
  [=]string finalizers
  [uid]OwnerReference ownerReferences
  []ManagedFieldsEntry managedFields
ListMeta
  string continue resourceVersion selfLink
  int remainingItemCount
Condition
  string type status reason message
  time lastTransitionTime
  int observedGeneration
LegacyCondition
  string type status reason message
  time lastTransitionTime lastProbeTime lastUpdateTime lastHeartbeatTime
  int observedGeneration
LabelSelectorRequirement
  string key operator
  []string values
LabelSelector atomic
  []LabelSelectorRequirement matchExpressions
  {}string matchLabels
LocalObjectReference atomic
  string name
ObjectReference atomic
  string apiVersion fieldPath kind name namespace resourceVersion uid
TypedLocalObjectReference atomic
  string apiGroup kind name
TypedObjectReference
  string apiGroup kind name namespace

Namespace
  string apiVersion kind
  ObjectMeta metadata
  NamespaceSpec spec
  NamespaceStatus status
NamespaceSpec
  []string finalizers
NamespaceStatus
  string phase
  [type]LegacyCondition conditions

ResourceQuota
  string apiVersion kind
  ObjectMeta metadata
  ResourceQuotaSpec spec
  ResourceQuotaStatus status
ResourceQuotaSpec
  {}quantity hard
  []string scopes
  ScopeSelector scopeSelector
ScopeSelector atomic
  []ScopedResourceSelectorRequirement matchExpressions
ScopedResourceSelectorRequirement
  string operator scopeName
  []string values
ResourceQuotaStatus
  {}quantity hard used

LimitRange
  string apiVersion kind
  ObjectMeta metadata
  LimitRangeSpec spec
LimitRangeSpec
  []LimitRangeItem limits
LimitRangeItem
  string type
  {}quantity default defaultRequest max maxLimitRequestRatio min

ServiceAccount
  string apiVersion kind
  ObjectMeta metadata
  bool automountServiceAccountToken
  [name]LocalObjectReference imagePullSecrets
  [name]ObjectReference secrets

PersistentVolumeClaim
  string apiVersion kind
  ObjectMeta metadata
  PersistentVolumeClaimSpec spec
  PersistentVolumeClaimStatus status
PersistentVolumeClaimSpec
  []string accessModes
  TypedLocalObjectReference dataSource
  TypedObjectReference dataSourceRef
  VolumeResourceRequirements resources
  LabelSelector selector
  string storageClassName volumeAttributesClassName volumeMode volumeName
VolumeResourceRequirements
  {}quantity limits requests
PersistentVolumeClaimStatus
  []string accessModes
  {!}string allocatedResourceStatuses
  {}quantity allocatedResources capacity
  [type]LegacyCondition conditions
  string currentVolumeAttributesClassName phase
  ModifyVolumeStatus modifyVolumeStatus
ModifyVolumeStatus
  string status targetVolumeAttributesClassName

ConfigMap
  string apiVersion kind
  ObjectMeta metadata
  {}string binaryData data
  bool immutable
Secret
  string apiVersion kind type
  ObjectMeta metadata
  {}string data stringData
  bool immutable

Service
  string apiVersion kind
  ObjectMeta metadata
  ServiceSpec spec
  ServiceStatus status
ServiceSpec
  bool allocateLoadBalancerNodePorts publishNotReadyAddresses
  string clusterIP externalName externalTrafficPolicy internalTrafficPolicy ipFamilyPolicy
  string loadBalancerClass loadBalancerIP sessionAffinity trafficDistribution type
  []string clusterIPs externalIPs ipFamilies loadBalancerSourceRanges
  int healthCheckNodePort
  [port,protocol]ServicePort ports
  {!}string selector
  any sessionAffinityConfig
ServicePort
  string appProtocol name protocol
  int nodePort port
  int-or-string targetPort
ServiceStatus
  [type]Condition conditions
  any loadBalancer

Node
  string apiVersion kind
  ObjectMeta metadata
  NodeSpec spec
  NodeStatus status
NodeSpec
  any configSource
  string externalID podCIDR providerID
  [=]string podCIDRs
  []Taint taints
  bool unschedulable
Taint
  string effect key value
  time timeAdded
NodeStatus
  [type]NodeAddress addresses
  {}quantity allocatable capacity
  [type]LegacyCondition conditions
  any config daemonEndpoints features nodeInfo
  []any images runtimeHandlers volumesAttached declaredFeatures
  string phase
  []string volumesInUse
NodeAddress
  string address type

Event
  string apiVersion kind
  string action message reason reportingComponent reportingInstance type
  ObjectMeta metadata
  int count
  time eventTime firstTimestamp lastTimestamp
  ObjectReference involvedObject related
  EventSeries series
  EventSource source
EventSeries
  int count
  time lastObservedTime
EventSource
  string component host
Endpoints
  string apiVersion kind
  ObjectMeta metadata
  []any subsets

Role
  string apiVersion kind
  ObjectMeta metadata
  []PolicyRule rules
ClusterRole
  string apiVersion kind
  ObjectMeta metadata
  []PolicyRule rules
  AggregationRule aggregationRule
AggregationRule
  []LabelSelector clusterRoleSelectors
PolicyRule
  []string apiGroups nonResourceURLs resourceNames resources verbs
RoleBinding
  string apiVersion kind
  ObjectMeta metadata
  RoleRef roleRef
  []Subject subjects
ClusterRoleBinding
  string apiVersion kind
  ObjectMeta metadata
  RoleRef roleRef
  []Subject subjects
RoleRef atomic
  string apiGroup kind name
Subject atomic
  string apiGroup kind name namespace

NetworkPolicy
  string apiVersion kind
  ObjectMeta metadata
  NetworkPolicySpec spec
NetworkPolicySpec
  LabelSelector podSelector
  []string policyTypes
  []NetworkPolicyIngressRule ingress
  []NetworkPolicyEgressRule egress
NetworkPolicyIngressRule
  []NetworkPolicyPeer from
  []NetworkPolicyPort ports
NetworkPolicyEgressRule
  []NetworkPolicyPort ports
  []NetworkPolicyPeer to
NetworkPolicyPeer
  IPBlock ipBlock
  LabelSelector namespaceSelector podSelector
NetworkPolicyPort
  int endPort
  int-or-string port
  string protocol
IPBlock
  string cidr
  []string except

PriorityClass
  string apiVersion kind description preemptionPolicy
  ObjectMeta metadata
  bool globalDefault
  int value
ValidatingAdmissionPolicy
  string apiVersion kind
  ObjectMeta metadata
  ValidatingAdmissionPolicySpec spec
  any status
ValidatingAdmissionPolicySpec
  string failurePolicy
  [key]AuditAnnotation auditAnnotations
  [name]MatchCondition matchConditions
  MatchResources matchConstraints
  ParamKind paramKind
  []Validation validations
  [name]Variable variables
AuditAnnotation
  string key valueExpression
MatchCondition
  string expression name
Variable atomic
  string expression name
Validation
  string expression message messageExpression reason
ParamKind atomic
  string apiVersion kind
MatchResources atomic
  string matchPolicy
  []NamedRuleWithOperations excludeResourceRules resourceRules
  LabelSelector namespaceSelector objectSelector
NamedRuleWithOperations atomic
  string scope
  []string apiGroups apiVersions operations resourceNames resources
ValidatingAdmissionPolicyBinding
  string apiVersion kind
  ObjectMeta metadata
  ValidatingAdmissionPolicyBindingSpec spec
ValidatingAdmissionPolicyBindingSpec
  string policyName
  MatchResources matchResources
  any paramRef
  [=]string validationActions
StorageClass
  string apiVersion kind provisioner reclaimPolicy volumeBindingMode
  ObjectMeta metadata
  bool allowVolumeExpansion
  []any allowedTopologies
  []string mountOptions
  {}string parameters
Lease
  string apiVersion kind
  ObjectMeta metadata
  LeaseSpec spec
LeaseSpec
  time acquireTime renewTime
  string holderIdentity preferredHolder strategy
  int leaseDurationSeconds leaseTransitions

SelfSubjectAccessReview
  string apiVersion kind
  ObjectMeta metadata
  SelfSubjectAccessReviewSpec spec
  SubjectAccessReviewStatus status
SelfSubjectAccessReviewSpec
  ResourceAttributes resourceAttributes
  NonResourceAttributes nonResourceAttributes
ResourceAttributes
  any fieldSelector labelSelector
  string group name namespace resource subresource verb version
NonResourceAttributes
  string path verb
SubjectAccessReviewStatus
  bool allowed denied
  string evaluationError reason
"""
