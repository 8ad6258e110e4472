package run

// Names that the starter and the worker must agree on.
const (
	// TaskQueue takes the workflows and all activities but the provider's.
	TaskQueue = "ironlot"
	// ProviderTaskQueue takes the activities that call the provider's API:
	// the server keeps one rate limit for it over all workers.
	ProviderTaskQueue = "ironlot-provider"

	WorkflowNode = "ProvisionNode"
	WorkflowLot  = "ProvisionLot"
)

// Search attributes, all of type Keyword.
const (
	AttrLot   = "IronlotLot"
	AttrNode  = "IronlotNode"
	AttrPhase = "IronlotPhase"
	AttrState = "IronlotState"
)
