"""Outline tables of pods and jobs; the rarer volume types are not described further."""

TABLE = """
Pod
  string apiVersion kind
  ObjectMeta metadata
  PodSpec spec
  PodStatus status
PodTemplateSpec
  ObjectMeta metadata
  PodSpec spec
PodSpec
  int activeDeadlineSeconds priority terminationGracePeriodSeconds
  Affinity affinity
  bool automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID hostUsers
  bool setHostnameAsFQDN shareProcessNamespace
  [name]Container containers initContainers ephemeralContainers
  PodDNSConfig dnsConfig
  string dnsPolicy hostname hostnameOverride nodeName preemptionPolicy priorityClassName restartPolicy
  string runtimeClassName schedulerName serviceAccount serviceAccountName subdomain
  [ip]HostAlias hostAliases
  [name]LocalObjectReference imagePullSecrets
  {!}string nodeSelector
  NamedReference os
  {}quantity overhead
  []PodReadinessGate readinessGates
  [name]PodResourceClaim resourceClaims
  ResourceRequirements resources
  [name]NamedReference schedulingGates
  SchedulingGroup schedulingGroup
  PodSecurityContext securityContext
  []Toleration tolerations
  [topologyKey,whenUnsatisfiable]TopologySpreadConstraint topologySpreadConstraints
  [name]Volume volumes
Container
  []string args command
  [name]EnvVar env
  []EnvFromSource envFrom
  string image imagePullPolicy name restartPolicy targetContainerName
  string terminationMessagePath terminationMessagePolicy workingDir
  Lifecycle lifecycle
  Probe livenessProbe readinessProbe startupProbe
  [containerPort,protocol]ContainerPort ports
  []ContainerResizePolicy resizePolicy
  ResourceRequirements resources
  []ContainerRestartRule restartPolicyRules
  SecurityContext securityContext
  bool stdin stdinOnce tty
  [devicePath]VolumeDevice volumeDevices
  [mountPath]VolumeMount volumeMounts
NamedReference
  string name
NameValue
  string name value
HostAlias
  []string hostnames
  string ip
PodDNSConfig
  []string nameservers searches
  []NameValue options
PodReadinessGate
  string conditionType
PodResourceClaim
  string name resourceClaimName resourceClaimTemplateName
SchedulingGroup
  string podGroupName
ResourceRequirements
  [name]ResourceClaim claims
  {}quantity limits requests
ResourceClaim
  string name request
Toleration
  string effect key operator value
  int tolerationSeconds
TopologySpreadConstraint
  LabelSelector labelSelector
  []string matchLabelKeys
  int maxSkew minDomains
  string nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable

Affinity
  NodeAffinity nodeAffinity
  PodAffinity podAffinity podAntiAffinity
NodeAffinity
  []PreferredSchedulingTerm preferredDuringSchedulingIgnoredDuringExecution
  NodeSelector requiredDuringSchedulingIgnoredDuringExecution
PreferredSchedulingTerm
  NodeSelectorTerm preference
  int weight
NodeSelector atomic
  []NodeSelectorTerm nodeSelectorTerms
NodeSelectorTerm atomic
  []LabelSelectorRequirement matchExpressions matchFields
PodAffinity
  []WeightedPodAffinityTerm preferredDuringSchedulingIgnoredDuringExecution
  []PodAffinityTerm requiredDuringSchedulingIgnoredDuringExecution
WeightedPodAffinityTerm
  PodAffinityTerm podAffinityTerm
  int weight
PodAffinityTerm
  LabelSelector labelSelector namespaceSelector
  []string matchLabelKeys mismatchLabelKeys namespaces
  string topologyKey

EnvVar
  string name value
  EnvVarSource valueFrom
EnvVarSource
  KeySelector configMapKeyRef secretKeyRef
  ObjectFieldSelector fieldRef
  FileKeySelector fileKeyRef
  ResourceFieldSelector resourceFieldRef
KeySelector atomic
  string key name
  bool optional
ObjectFieldSelector atomic
  string apiVersion fieldPath
FileKeySelector atomic
  string key path volumeName
  bool optional
ResourceFieldSelector atomic
  string containerName resource
  quantity divisor
EnvFromSource
  EnvSource configMapRef secretRef
  string prefix
EnvSource
  string name
  bool optional
Lifecycle
  LifecycleHandler postStart preStop
  string stopSignal
LifecycleHandler
  ExecAction exec
  HTTPGetAction httpGet
  SleepAction sleep
  TCPSocketAction tcpSocket
ExecAction
  []string command
HTTPGetAction
  string host path scheme
  []NameValue httpHeaders
  int-or-string port
SleepAction
  int seconds
TCPSocketAction
  string host
  int-or-string port
GRPCAction
  int port
  string service
Probe
  ExecAction exec
  int failureThreshold initialDelaySeconds periodSeconds successThreshold
  int terminationGracePeriodSeconds timeoutSeconds
  GRPCAction grpc
  HTTPGetAction httpGet
  TCPSocketAction tcpSocket
ContainerPort
  int containerPort hostPort
  string hostIP name protocol
ContainerResizePolicy
  string resourceName restartPolicy
ContainerRestartRule
  string action
  ContainerRestartExitCodes exitCodes
ContainerRestartExitCodes
  string operator
  [=]int values
VolumeDevice
  string devicePath name
VolumeMount
  string mountPath mountPropagation name recursiveReadOnly subPath subPathExpr
  bool readOnly

SecurityProfile
  string localhostProfile type
Capabilities
  []string add drop
SELinuxOptions
  string level role type user
WindowsOptions
  string gmsaCredentialSpec gmsaCredentialSpecName runAsUserName
  bool hostProcess
SecurityContext
  bool allowPrivilegeEscalation privileged readOnlyRootFilesystem runAsNonRoot
  SecurityProfile appArmorProfile seccompProfile
  Capabilities capabilities
  string procMount
  int runAsGroup runAsUser
  SELinuxOptions seLinuxOptions
  WindowsOptions windowsOptions
PodSecurityContext
  SecurityProfile appArmorProfile seccompProfile
  int fsGroup runAsGroup runAsUser
  string fsGroupChangePolicy seLinuxChangePolicy supplementalGroupsPolicy
  bool runAsNonRoot
  SELinuxOptions seLinuxOptions
  []int supplementalGroups
  []NameValue sysctls
  WindowsOptions windowsOptions

Volume
  string name
  ConfigMapVolume configMap
  CSIVolume csi
  DownwardAPIVolume downwardAPI
  EmptyDirVolume emptyDir
  EphemeralVolume ephemeral
  HostPathVolume hostPath
  ImageVolume image
  NFSVolume nfs
  ClaimVolume persistentVolumeClaim
  ProjectedVolume projected
  SecretVolume secret
  AzureDiskVolume azureDisk
  AzureFileVolume azureFile
  any awsElasticBlockStore cephfs cinder fc flexVolume flocker gcePersistentDisk gitRepo glusterfs
  any iscsi photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume
KeyToPath
  string key path
  int mode
ConfigMapVolume
  int defaultMode
  []KeyToPath items
  string name
  bool optional
SecretVolume
  int defaultMode
  []KeyToPath items
  bool optional
  string secretName
CSIVolume
  string driver fsType
  LocalObjectReference nodePublishSecretRef
  bool readOnly
  {}string volumeAttributes
DownwardAPIVolume
  int defaultMode
  []DownwardAPIFile items
DownwardAPIFile
  ObjectFieldSelector fieldRef
  int mode
  string path
  ResourceFieldSelector resourceFieldRef
EmptyDirVolume
  string medium
  quantity sizeLimit
EphemeralVolume
  ClaimTemplate volumeClaimTemplate
ClaimTemplate
  ObjectMeta metadata
  PersistentVolumeClaimSpec spec
HostPathVolume
  string path type
ImageVolume
  string pullPolicy reference
NFSVolume
  string path server
  bool readOnly
ClaimVolume
  string claimName
  bool readOnly
AzureDiskVolume
  string cachingMode diskName diskURI fsType kind
  bool readOnly
AzureFileVolume
  bool readOnly
  string secretName shareName
ProjectedVolume
  int defaultMode
  []VolumeProjection sources
VolumeProjection
  ClusterTrustBundleProjection clusterTrustBundle
  ProjectedKeys configMap secret
  ProjectedDownwardAPI downwardAPI
  any podCertificate
  ServiceAccountTokenProjection serviceAccountToken
ClusterTrustBundleProjection
  LabelSelector labelSelector
  string name path signerName
  bool optional
ProjectedKeys
  []KeyToPath items
  string name
  bool optional
ProjectedDownwardAPI
  []DownwardAPIFile items
ServiceAccountTokenProjection
  string audience path
  int expirationSeconds

PodStatus
  [type]LegacyCondition conditions
  []ContainerStatus containerStatuses initContainerStatuses ephemeralContainerStatuses
  string hostIP message nominatedNodeName phase podIP qosClass reason resize
  [ip]PodIP podIPs
  []PodIP hostIPs
  int observedGeneration
  time startTime
  any extendedResourceClaimStatus
  {}quantity allocatedResources
  ResourceRequirements resources
  [name]any resourceClaimStatuses
PodIP
  string ip
ContainerStatus
  {}quantity allocatedResources
  [name]any allocatedResourcesStatus
  string containerID image imageID name stopSignal
  any lastState state user
  bool ready started
  ResourceRequirements resources
  int restartCount
  []any volumeMounts

Job
  string apiVersion kind
  ObjectMeta metadata
  JobSpec spec
  JobStatus status
JobSpec
  int activeDeadlineSeconds backoffLimit backoffLimitPerIndex completions maxFailedIndexes parallelism
  int ttlSecondsAfterFinished
  string completionMode managedBy podReplacementPolicy
  bool manualSelector suspend
  PodFailurePolicy podFailurePolicy
  LabelSelector selector
  SuccessPolicy successPolicy
  PodTemplateSpec template
PodFailurePolicy
  []PodFailurePolicyRule rules
PodFailurePolicyRule
  string action
  PodFailurePolicyExitCodes onExitCodes
  []PodFailurePolicyCondition onPodConditions
PodFailurePolicyExitCodes
  string containerName operator
  [=]int values
PodFailurePolicyCondition
  string status type
SuccessPolicy
  []SuccessPolicyRule rules
SuccessPolicyRule
  int succeededCount
  string succeededIndexes
JobStatus
  int active failed ready succeeded terminating
  string completedIndexes failedIndexes
  time completionTime startTime
  []LegacyCondition conditions
  UncountedTerminatedPods uncountedTerminatedPods
UncountedTerminatedPods
  [=]string failed succeeded

Deployment
  string apiVersion kind
  ObjectMeta metadata
  DeploymentSpec spec
  DeploymentStatus status
DeploymentSpec
  int minReadySeconds progressDeadlineSeconds replicas revisionHistoryLimit
  bool paused
  LabelSelector selector
  DeploymentStrategy strategy
  PodTemplateSpec template
DeploymentStrategy
  string type
  RollingUpdateDeployment rollingUpdate
RollingUpdateDeployment
  int-or-string maxSurge maxUnavailable
DeploymentStatus
  int availableReplicas collisionCount readyReplicas replicas terminatingReplicas
  int unavailableReplicas updatedReplicas observedGeneration
  [type]LegacyCondition conditions
"""
