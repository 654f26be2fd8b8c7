"""Outline tables of JobSet in version v1alpha2."""

TABLE = """
JobSet
  string apiVersion kind
  ObjectMeta metadata
  JobSetSpec spec
  JobSetStatus status
JobSetSpec
  JobSetCoordinator coordinator
  JobSetFailurePolicy failurePolicy
  string managedBy
  JobSetNetwork network
  [name]ReplicatedJob replicatedJobs
  JobSetStartupPolicy startupPolicy
  JobSetSuccessPolicy successPolicy
  bool suspend
  int ttlSecondsAfterFinished
  []JobSetClaimPolicy volumeClaimPolicies
JobSetCoordinator
  int jobIndex podIndex
  string replicatedJob
JobSetFailurePolicy
  int maxRestarts
  string restartStrategy
  []JobSetFailureRule rules
JobSetFailureRule
  string action name
  []string onJobFailureMessagePatterns onJobFailureReasons targetReplicatedJobs
JobSetNetwork
  bool enableDNSHostnames publishNotReadyAddresses
  string subdomain
ReplicatedJob
  [name]JobSetDependency dependsOn
  string groupName name
  int replicas
  JobTemplateSpec template
JobSetDependency
  string name status
JobTemplateSpec
  ObjectMeta metadata
  JobSpec spec
JobSetStartupPolicy
  string startupPolicyOrder
JobSetSuccessPolicy
  string operator
  []string targetReplicatedJobs
JobSetClaimPolicy
  JobSetClaimRetention retentionPolicy
  []any templates
JobSetClaimRetention
  string whenDeleted
JobSetStatus
  [type]Condition conditions
  int currentInPlaceRestartAttempt previousInPlaceRestartAttempt restarts restartsCountTowardsMax
  [name]ReplicatedJobStatus replicatedJobsStatus
  string terminalState
ReplicatedJobStatus
  int active failed ready succeeded suspended
  []int jobRestarts jobRestartsCountTowardsMax
  string name
"""
