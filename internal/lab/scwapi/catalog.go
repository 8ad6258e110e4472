package scwapi

import (
	"encoding/json"
	"slices"
	"strings"
)

// IDs of the provider's public catalog.
const (
	ubuntuID         = "03b7f4ba-a6a1-4305-984e-b54fafbf1681"
	privateNetworkID = "cd4158d7-2d65-49be-8803-c4b8ab6f760c"
	remoteAccessID   = "931df052-d713-4674-8b58-96a63244c8e2"
	nvmeOfferID      = "ddb09834-8680-4339-b5e3-19ca5205fa1f"
	ssdOfferID       = "f7241870-c383-4fa2-bbca-5189600df5c4"
)

// cloudInitTag is the tag of offers that take user data.
const cloudInitTag = "cloud-init"

type moneyJSON struct {
	CurrencyCode string `json:"currency_code"`
	Units        int64  `json:"units"`
	Nanos        int32  `json:"nanos"`
}

type diskJSON struct {
	Capacity int64  `json:"capacity"`
	Type     string `json:"type"`
}

type cpuJSON struct {
	Name        string `json:"name"`
	CoreCount   int    `json:"core_count"`
	ThreadCount int    `json:"thread_count"`
	Frequency   int    `json:"frequency"`
	Benchmark   string `json:"benchmark"`
}

type memoryJSON struct {
	Capacity  int64  `json:"capacity"`
	Type      string `json:"type"`
	Frequency int    `json:"frequency"`
	IsEcc     bool   `json:"is_ecc"`
}

// offerJSON is a kind of server, fields as recorded.
type offerJSON struct {
	ID                 string            `json:"id"`
	Name               string            `json:"name"`
	Stock              string            `json:"stock"`
	Bandwidth          int64             `json:"bandwidth"`
	MaxBandwidth       int64             `json:"max_bandwidth"`
	CommercialRange    string            `json:"commercial_range"`
	Disks              []diskJSON        `json:"disks"`
	Enable             bool              `json:"enable"`
	CPUs               []cpuJSON         `json:"cpus"`
	Memories           []memoryJSON      `json:"memories"`
	QuotaName          string            `json:"quota_name"`
	PricePerHour       *moneyJSON        `json:"price_per_hour"`
	PricePerMonth      *moneyJSON        `json:"price_per_month"`
	PersistentMemories []struct{}        `json:"persistent_memories"`
	RaidControllers    []struct{}        `json:"raid_controllers"`
	IncompatibleOsIDs  []string          `json:"incompatible_os_ids"`
	SubscriptionPeriod string            `json:"subscription_period"`
	OperationPath      string            `json:"operation_path"`
	Fee                *moneyJSON        `json:"fee"`
	Options            []offerOptionJSON `json:"options"`
	PrivateBandwidth   int64             `json:"private_bandwidth"`
	SharedBandwidth    bool              `json:"shared_bandwidth"`
	Tags               []string          `json:"tags"`
	Gpus               []struct{}        `json:"gpus"`
	MonthlyOfferID     *string           `json:"monthly_offer_id"`
	Zone               string            `json:"zone"`
}

// offerOptionJSON is an option that an offer can have.
type offerOptionJSON struct {
	catalogOptionJSON
	Enabled            bool       `json:"enabled"`
	SubscriptionPeriod string     `json:"subscription_period"`
	Price              *moneyJSON `json:"price"`
	OsID               string     `json:"os_id"`
}

// catalogOptionJSON is an option of the catalog.
type catalogOptionJSON struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	Manageable     bool           `json:"manageable"`
	PrivateNetwork *bandwidthJSON `json:"private_network,omitempty"`
	RemoteAccess   *struct{}      `json:"remote_access,omitempty"`
}

func (o offerJSON) id() string         { return o.ID }
func (o catalogOptionJSON) id() string { return o.ID }
func (o osJSON) id() string            { return o.ID }

// on is the option on a server. The bandwidth is 0 there, as recorded.
func (o catalogOptionJSON) on(status string) optionJSON {
	on := optionJSON{ID: o.ID, Name: o.Name, Status: status, Manageable: o.Manageable, RemoteAccess: o.RemoteAccess}
	if o.PrivateNetwork != nil {
		on.PrivateNetwork = &bandwidthJSON{}
	}
	return on
}

// options are the catalog's that have to do with a lab.
func options() []catalogOptionJSON {
	return []catalogOptionJSON{
		{ID: privateNetworkID, Name: "Private Network", Manageable: true, PrivateNetwork: &bandwidthJSON{BandwidthInBps: 1_000_000_000}},
		{ID: remoteAccessID, Name: "Remote Access", Manageable: true, RemoteAccess: &struct{}{}},
	}
}

// offers are two of the catalog: one with cloud-init, one without.
func offers(zone string) []offerJSON {
	offer := func(id, name, family string, disk diskJSON, cpu cpuJSON, memory memoryJSON, nanos int32, tags []string) offerJSON {
		o := offerJSON{
			ID: id, Name: name, Stock: "available", Bandwidth: 1_000_000_000, MaxBandwidth: 1_000_000_000,
			CommercialRange: family, Disks: []diskJSON{disk, disk}, Enable: true, CPUs: []cpuJSON{cpu}, Memories: []memoryJSON{memory},
			QuotaName: strings.ReplaceAll(name, "-", "_"), PricePerHour: &moneyJSON{"EUR", 0, nanos}, Fee: &moneyJSON{CurrencyCode: "EUR"},
			PersistentMemories: []struct{}{}, RaidControllers: []struct{}{}, IncompatibleOsIDs: []string{}, Tags: tags, Gpus: []struct{}{},
			SubscriptionPeriod: "hourly", PrivateBandwidth: 1_000_000_000, SharedBandwidth: true, Zone: zone,
		}
		for _, option := range options() {
			o.Options = append(o.Options, offerOptionJSON{catalogOptionJSON: option, SubscriptionPeriod: "hourly",
				Price: &moneyJSON{CurrencyCode: "EUR"}, OsID: "00000000-0000-0000-0000-000000000000"})
		}
		return o
	}
	return []offerJSON{
		offer(nvmeOfferID, "EM-I215E-NVME", "iridium", diskJSON{1920383410176, "NVMe"},
			cpuJSON{"AMD EPYC 7313P", 16, 32, 3000, "0"}, memoryJSON{64_000_000_000, "DDR4", 3200, true}, 400_000_000, []string{cloudInitTag}),
		offer(ssdOfferID, "EM-A115X-SSD", "aluminium", diskJSON{1024209543168, "SSD"},
			cpuJSON{"Intel Xeon E3 1220 or equivalent", 4, 4, 3100, "3895"}, memoryJSON{32_000_000_000, "DDR3", 1600, true}, 91_000_000, []string{}),
	}
}

// defaultOffer is the offer of servers that are there from the start.
func defaultOffer() offerJSON { return offers("")[0] }

// osJSON is an operating system that the provider installs.
type osJSON struct {
	ID                          string    `json:"id"`
	Name                        string    `json:"name"`
	Version                     string    `json:"version"`
	LogoURL                     string    `json:"logo_url"`
	SSH                         fieldJSON `json:"ssh"`
	User                        fieldJSON `json:"user"`
	Password                    fieldJSON `json:"password"`
	ServiceUser                 fieldJSON `json:"service_user"`
	ServicePassword             fieldJSON `json:"service_password"`
	Enabled                     bool      `json:"enabled"`
	LicenseRequired             bool      `json:"license_required"`
	Allowed                     bool      `json:"allowed"`
	CustomPartitioningSupported bool      `json:"custom_partitioning_supported"`
	CloudInitSupported          bool      `json:"cloud_init_supported"`
	CloudInitVersion            *string   `json:"cloud_init_version"`
	Zone                        string    `json:"zone"`
}

type fieldJSON struct {
	Editable     bool    `json:"editable"`
	Required     bool    `json:"required"`
	DefaultValue *string `json:"default_value"`
}

// systems are the operating systems: Ubuntu, which servers come with.
func systems(zone string) []osJSON {
	user := "ubuntu"
	return []osJSON{{
		ID: ubuntuID, Name: "Ubuntu", Version: "24.04 LTS (Noble Numbat)",
		SSH: fieldJSON{Editable: true, Required: true}, User: fieldJSON{DefaultValue: &user},
		Enabled: true, Allowed: true, CustomPartitioningSupported: true, CloudInitSupported: true, Zone: zone,
	}}
}

func (a *API) listOffers(r *request) (any, *problem) {
	query := r.URL.Query()
	all := slices.DeleteFunc(offers(r.PathValue("zone")), func(o offerJSON) bool {
		period := query.Get("subscription_period")
		return !strings.Contains(o.Name, query.Get("name")) ||
			period != "" && period != "unknown_subscription_period" && period != o.SubscriptionPeriod
	})
	return page(r, "offers", all)
}

func (a *API) getOffer(r *request) (any, *problem) {
	return one(offers(r.PathValue("zone")), "offer", r.PathValue("offer"))
}

func (a *API) listOS(r *request) (any, *problem) { return page(r, "os", systems(r.PathValue("zone"))) }

func (a *API) getOS(r *request) (any, *problem) {
	return one(systems(r.PathValue("zone")), "os", r.PathValue("os"))
}

func (a *API) listOptions(r *request) (any, *problem) { return page(r, "options", options()) }

func (a *API) getOption(r *request) (any, *problem) {
	return one(options(), "option", r.PathValue("option"))
}

func (a *API) defaultSchema(*request) (any, *problem) {
	return json.RawMessage(partitioningSchema), nil
}

// one answers with the element that has the ID.
func one[T identified](list []T, kind, id string) (any, *problem) {
	element, ok := findByID(list, id)
	if !ok {
		return nil, noResource(kind, id)
	}
	return element, nil
}
