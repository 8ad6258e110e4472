package scwapi

import (
	"encoding/json"
	"time"
)

// stamp is a time as the API writes it: UTC with six digits.
type stamp time.Time

// MarshalJSON writes the time.
func (s stamp) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(s).UTC().Format(`"2006-01-02T15:04:05.000000Z"`)), nil
}

// The JSON of a server, fields in the order of the real answers.
type serverJSON struct {
	ID             string       `json:"id"`
	OrganizationID string       `json:"organization_id"`
	Name           string       `json:"name"`
	Description    string       `json:"description"`
	UpdatedAt      stamp        `json:"updated_at"`
	CreatedAt      stamp        `json:"created_at"`
	Status         string       `json:"status"`
	OfferID        string       `json:"offer_id"`
	Install        *installJSON `json:"install"`
	Tags           []string     `json:"tags"`
	IPs            []ipJSON     `json:"ips"`
	Domain         string       `json:"domain"`
	BootType       string       `json:"boot_type"`
	PingStatus     string       `json:"ping_status"`
	ProjectID      string       `json:"project_id"`
	Options        []optionJSON `json:"options"`
	OfferName      string       `json:"offer_name"`
	RescueServer   *rescueJSON  `json:"rescue_server"`
	Protected      bool         `json:"protected"`
	UserData       *string      `json:"user_data"` // base64
	Zone           string       `json:"zone"`
}

type installJSON struct {
	OsID               string          `json:"os_id"`
	Hostname           string          `json:"hostname"`
	SSHKeyIDs          []string        `json:"ssh_key_ids"`
	Status             string          `json:"status"`
	User               string          `json:"user"`
	ServiceUser        string          `json:"service_user"`
	ServiceURL         string          `json:"service_url"`
	PartitioningSchema json.RawMessage `json:"partitioning_schema"`
}

type ipJSON struct {
	ID                   string `json:"id"`
	Address              string `json:"address"`
	Reverse              string `json:"reverse"`
	Version              string `json:"version"`
	ReverseStatus        string `json:"reverse_status"`
	ReverseStatusMessage string `json:"reverse_status_message"`
}

type rescueJSON struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// optionJSON is an option of a server. Exactly one of the pointers is set.
type optionJSON struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	Status         string         `json:"status"`
	Manageable     bool           `json:"manageable"`
	ExpiresAt      *stamp         `json:"expires_at"`
	PrivateNetwork *bandwidthJSON `json:"private_network,omitempty"`
	RemoteAccess   *struct{}      `json:"remote_access,omitempty"`
}

type bandwidthJSON struct {
	BandwidthInBps int64 `json:"bandwidth_in_bps"`
}

type eventJSON struct {
	ID        string `json:"id"` // the server's
	Action    string `json:"action"`
	UpdatedAt stamp  `json:"updated_at"`
	CreatedAt stamp  `json:"created_at"`
}

// attachmentJSON is a private network on a server. The v1 API has no
// ipam_ip_ids.
type attachmentJSON struct {
	ID               string    `json:"id"`
	ProjectID        string    `json:"project_id"`
	ServerID         string    `json:"server_id"`
	PrivateNetworkID string    `json:"private_network_id"`
	Vlan             *uint32   `json:"vlan"`
	Status           string    `json:"status"`
	CreatedAt        stamp     `json:"created_at"`
	UpdatedAt        stamp     `json:"updated_at"`
	IpamIPIDs        *[]string `json:"ipam_ip_ids,omitempty"`
}
