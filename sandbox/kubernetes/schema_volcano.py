"""Outline tables of Volcano's kinds, as the definitions of its release 1.15 have them."""

TABLE = """
VolcanoJob
  string apiVersion kind
  ObjectMeta metadata
  VolcanoJobSpec spec
  VolcanoJobStatus status
VolcanoJobSpec
  int maxRetry minAvailable minSuccess ttlSecondsAfterFinished
  string priorityClassName queue runningEstimate schedulerName
  VolcanoNetwork networkTopology
  {}[]string plugins
  []VolcanoPolicy policies
  []VolcanoTask tasks
  []VolcanoVolume volumes
VolcanoNetwork
  int highestTierAllowed
  string highestTierName mode
VolcanoPolicy
  string action event timeout
  []string events
  int exitCode
VolcanoTask
  VolcanoDependency dependsOn
  int maxRetry minAvailable replicas
  string name topologyPolicy
  VolcanoPartitions partitionPolicy
  []VolcanoPolicy policies
  PodTemplateSpec template
VolcanoDependency
  string iteration
  []string name
VolcanoPartitions
  int minPartitions partitionSize totalPartitions
  VolcanoNetwork networkTopology
VolcanoVolume
  string mountPath volumeClaimName
  PersistentVolumeClaimSpec volumeClaim
VolcanoJobStatus
  []VolcanoJobCondition conditions
  {}string controlledResources
  int failed minAvailable pending retryCount running succeeded terminating unknown version
  string runningDuration
  VolcanoJobState state
  {}VolcanoTaskState taskStatusCount
VolcanoJobCondition
  time lastTransitionTime
  string status
VolcanoJobState
  time lastTransitionTime
  string message phase reason
VolcanoTaskState
  {}int phase
Queue
  string apiVersion kind
  ObjectMeta metadata
  QueueSpec spec
  QueueStatus status
QueueSpec
  QueueAffinity affinity
  {}quantity capability deserved
  string dequeueStrategy parent type
  []QueueCluster extendClusters
  QueueGuarantee guarantee
  int priority weight
  bool reclaimable
QueueAffinity
  QueueNodeGroups nodeGroupAffinity nodeGroupAntiAffinity
QueueNodeGroups
  []string preferredDuringSchedulingIgnoredDuringExecution requiredDuringSchedulingIgnoredDuringExecution
QueueCluster
  {}quantity capacity
  string name
  int weight
QueueGuarantee
  {}quantity resource
QueueStatus
  {}quantity allocated
  int completed inqueue pending running unknown
  QueueReservation reservation
  string state
QueueReservation
  []string nodes
  {}quantity resource
PodGroup
  string apiVersion kind
  ObjectMeta metadata
  PodGroupSpec spec
  PodGroupStatus status
PodGroupSpec
  int minMember
  {}quantity minResources
  {}int minTaskMember
  VolcanoNetwork networkTopology
  string priorityClassName queue
  []SubGroupPolicy subGroupPolicy
SubGroupPolicy
  LabelSelector labelSelector
  []string matchLabelKeys
  int minSubGroups subGroupSize
  string name
  VolcanoNetwork networkTopology
PodGroupStatus
  []PodGroupCondition conditions
  int failed running succeeded
  string phase
PodGroupCondition
  time lastTransitionTime
  string message reason status transitionID type
Command
  string action apiVersion kind message reason
  ObjectMeta metadata
  OwnerReference target
"""
