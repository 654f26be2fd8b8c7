"""Outline tables of the Kueue kinds in version v1beta2."""

TABLE = """
FairSharing
  quantity weight
FairSharingStatus
  int weightedShare
ResourceGroup
  []string coveredResources
  [name]FlavorQuotas flavors
FlavorQuotas
  string name
  [name]ResourceQuotas resources
ResourceQuotas
  string name
  quantity nominalQuota borrowingLimit lendingLimit

ClusterQueue
  string apiVersion kind
  ObjectMeta metadata
  ClusterQueueSpec spec
  ClusterQueueStatus status
ClusterQueueSpec
  []ResourceGroup resourceGroups
  string cohortName queueingStrategy stopPolicy
  LabelSelector namespaceSelector
  FlavorFungibility flavorFungibility
  ClusterQueuePreemption preemption
  AdmissionChecksStrategy admissionChecksStrategy
  FairSharing fairSharing
  AdmissionScope admissionScope
  ConcurrentAdmissionPolicy concurrentAdmissionPolicy
FlavorFungibility
  string whenCanBorrow whenCanPreempt preference
ClusterQueuePreemption
  string withinClusterQueue reclaimWithinCohort
  BorrowWithinCohort borrowWithinCohort
BorrowWithinCohort
  string policy
  int maxPriorityThreshold
AdmissionChecksStrategy
  [name]AdmissionCheckStrategyRule admissionChecks
AdmissionCheckStrategyRule
  string name
  [=]string onFlavors
AdmissionScope
  string admissionMode
ConcurrentAdmissionPolicy
  ConcurrentAdmissionMigration migration
ConcurrentAdmissionMigration
  string mode
  ConcurrentAdmissionConstraints constraints
ConcurrentAdmissionConstraints
  string lastAcceptableFlavorName
ClusterQueueStatus
  [type]Condition conditions
  [name]ClusterQueueFlavorUsage flavorsReservation flavorsUsage
  int pendingWorkloads reservingWorkloads admittedWorkloads
  FairSharingStatus fairSharing
ClusterQueueFlavorUsage
  string name
  [name]ClusterQueueResourceUsage resources
ClusterQueueResourceUsage
  string name
  quantity total borrowed

LocalQueue
  string apiVersion kind
  ObjectMeta metadata
  LocalQueueSpec spec
  LocalQueueStatus status
LocalQueueSpec
  string clusterQueue stopPolicy
  FairSharing fairSharing
LocalQueueStatus
  [type]Condition conditions
  [name]LocalQueueFlavorUsage flavorsReservation flavorsUsage
  int pendingWorkloads reservingWorkloads admittedWorkloads
  LocalQueueFairSharingStatus fairSharing
LocalQueueFairSharingStatus
  int weightedShare
  AdmissionFairSharingStatus admissionFairSharingStatus
AdmissionFairSharingStatus
  {}quantity consumedResources
  time lastUpdate
LocalQueueFlavorUsage
  string name
  [name]LocalQueueResourceUsage resources
LocalQueueResourceUsage
  string name
  quantity total

Cohort
  string apiVersion kind
  ObjectMeta metadata
  CohortSpec spec
  CohortStatus status
CohortSpec
  string parentName
  []ResourceGroup resourceGroups
  FairSharing fairSharing
CohortStatus
  FairSharingStatus fairSharing

ResourceFlavor
  string apiVersion kind
  ObjectMeta metadata
  ResourceFlavorSpec spec
ResourceFlavorSpec
  {!}string nodeLabels
  []Taint nodeTaints
  []Toleration tolerations
  string topologyName

WorkloadPriorityClass
  string apiVersion kind description
  ObjectMeta metadata
  int value

AdmissionCheck
  string apiVersion kind
  ObjectMeta metadata
  AdmissionCheckSpec spec
  AdmissionCheckStatus status
AdmissionCheckSpec
  string controllerName
  AdmissionCheckParameters parameters
AdmissionCheckParameters
  string apiGroup kind name
AdmissionCheckStatus
  [type]Condition conditions

Topology
  string apiVersion kind
  ObjectMeta metadata
  TopologySpec spec
TopologySpec
  []TopologyLevel levels
TopologyLevel
  string nodeLabel

Workload
  string apiVersion kind
  ObjectMeta metadata
  WorkloadSpec spec
  WorkloadStatus status
WorkloadSpec
  bool active
  int maximumExecutionTimeSeconds priority
  [name]PodSet podSets
  [name]NamedReference preemptionGates
  PriorityClassRef priorityClassRef
  string queueName
PriorityClassRef
  string group kind name
PodSet
  int count minCount
  string name
  PodTemplateSpec template
  PodSetTopologyRequest topologyRequest
PodSetTopologyRequest
  string podIndexLabel podSetGroupName podSetSliceRequiredTopology preferred required subGroupIndexLabel
  int podSetSliceSize subGroupCount
  bool unconstrained
  []SliceConstraint podsetSliceRequiredTopologyConstraints
SliceConstraint
  int size
  string topology
WorkloadStatus
  int accumulatedPastExecutionTimeSeconds
  Admission admission
  [name]AdmissionCheckState admissionChecks
  string clusterName
  [type]Condition conditions
  []string nominatedClusterNames
  [name]PreemptionGateState preemptionGates
  [name]ReclaimablePod reclaimablePods
  RequeueState requeueState
  [name]PodSetRequest resourceRequests
  SchedulingStats schedulingStats
  [name]NamedReference unhealthyNodes
Admission
  string clusterQueue
  [name]PodSetAssignment podSetAssignments
PodSetAssignment
  int count
  string delayedTopologyRequest name
  {}string flavors
  {}quantity resourceUsage
  TopologyAssignment topologyAssignment
TopologyAssignment
  []string levels
  []TopologySlice slices
TopologySlice
  int domainCount
  SlicePodCounts podCounts
  []SliceValues valuesPerLevel
SlicePodCounts
  []int individual
  int universal
SliceValues
  SliceIndividualValues individual
  string universal
SliceIndividualValues
  string prefix suffix
  []string roots
AdmissionCheckState
  time lastTransitionTime
  string message name state
  []PodSetUpdate podSetUpdates
  int requeueAfterSeconds retryCount
PodSetUpdate
  {}string annotations labels nodeSelector
  string name
  []Toleration tolerations
PreemptionGateState
  time lastTransitionTime
  string name position
ReclaimablePod
  int count
  string name
RequeueState
  int count
  time requeueAt
PodSetRequest
  string name
  {}quantity resources
SchedulingStats
  [reason,underlyingCause]EvictionCount evictions
EvictionCount
  int count
  string reason underlyingCause
"""
