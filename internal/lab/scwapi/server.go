package scwapi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/scaleway/scaleway-sdk-go/validation"

	"github.com/ironlot/ironlot/internal/lab/hardware"
)

// ServerSpec describes a server that is there from the start: delivered,
// installed by the provider, ready.
type ServerSpec struct {
	ID        string // UUID; empty: made from the seed
	Name      string
	Zone      string           // empty: fr-par-2
	Machine   hardware.Machine // nil: nothing to switch
	Addresses []string         // empty: the machine's, or a documentation address
	Networks  []Network        // private networks that are attached
	Protected bool
	Tags      []string          // besides the lab's own
	Status    string            // empty: ready
	BootType  hardware.BootType // empty: normal; rescue powers the machine on into it
	SSHKeyIDs []string          // of the provider's installation
}

// Network is a private network that is attached to a server.
type Network struct {
	ID   string // of the private network; empty: a new one
	VLAN uint32 // 0: drawn
}

// Server is a server of the lab.
type Server struct {
	ID        string
	Name      string
	Zone      string
	Addresses []string
	api       *API
}

// Counters gives the server's counters so far.
func (s Server) Counters() Counters {
	c, _ := s.api.Counters(s.ID)
	return c
}

// server is a server's state, guarded by the API's lock.
type server struct {
	serverJSON
	machine  hardware.Machine
	networks []*attachment
	events   []eventJSON
	pending  []change
	counters Counters

	before  *serverJSON   // as it was before the last action
	actedAt time.Time     // of the last action
	tail    chan struct{} // closed when the machine's last command has ended
}

// change is something that happens to a server at a time.
type change struct {
	at    time.Time
	stuck bool // never, unless the faults are cleared
	apply func()
	quiet bool // leaves updated_at alone, as the real API does for some
}

// AddServer puts a server into the lab.
func (a *API) AddServer(spec ServerSpec) (Server, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkSpec(&spec); err != nil {
		return Server{}, err
	}
	now := a.stamp()
	s := &server{serverJSON: serverJSON{
		ID: spec.ID, OrganizationID: OrganizationID, ProjectID: ProjectID,
		Name: spec.Name, Zone: spec.Zone, Status: spec.Status, BootType: string(spec.BootType),
		CreatedAt: now, UpdatedAt: now,
		OfferID: defaultOffer().ID, OfferName: defaultOffer().Name,
		Tags: labTags(spec.Tags), Protected: spec.Protected,
		PingStatus: "ping_status_up",
		Domain:     domain(spec.ID, spec.Zone),
		Options:    []optionJSON{privateNetworkOption("option_status_enable")},
		Install:    a.install("completed", ubuntuID, "", spec.SSHKeyIDs),
	}, machine: spec.Machine}
	for _, address := range spec.Addresses {
		s.IPs = append(s.IPs, a.ip(address, s.Domain, "active"))
	}
	if spec.BootType == hardware.BootRescue {
		a.powerOn(s, nil)
	}
	for _, n := range spec.Networks {
		a.attachAtOnce(s, n)
	}
	a.servers = append(a.servers, s)
	return Server{ID: s.ID, Name: s.Name, Zone: s.Zone, Addresses: spec.Addresses, api: a}, nil
}

// checkSpec fills in what is empty and refuses what cannot be.
func (a *API) checkSpec(spec *ServerSpec) error {
	if spec.ID == "" {
		spec.ID = a.newID()
	}
	if spec.Zone == "" {
		spec.Zone = "fr-par-2"
	}
	if spec.Status == "" {
		spec.Status = "ready"
	}
	if spec.BootType == "" {
		spec.BootType = hardware.BootNormal
	}
	if len(spec.Addresses) == 0 {
		spec.Addresses = a.freshAddresses(spec.Machine)
	}
	for _, address := range spec.Addresses {
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("the server %q cannot have the address: %w", spec.Name, err)
		}
	}
	switch {
	case spec.Name == "":
		return errors.New("the server has no name")
	case !validation.IsUUID(spec.ID):
		return fmt.Errorf("the ID %q of server %q is not a UUID", spec.ID, spec.Name)
	case !slices.Contains(zones(), spec.Zone):
		return fmt.Errorf("the zone %q of server %q is none of %v", spec.Zone, spec.Name, zones())
	case a.find(spec.ID) != nil:
		return fmt.Errorf("there is a server %s already", spec.ID)
	}
	return nil
}

// freshAddresses gives an IPv4 and an IPv6 address; the order varies from
// server to server, as in the real API.
func (a *API) freshAddresses(m hardware.Machine) []string {
	n := len(a.servers) + 1
	v4 := fmt.Sprintf("203.0.113.%d", n%254+1)
	if m != nil {
		v4 = m.Address()
	}
	v6 := fmt.Sprintf("2001:db8::%x", n)
	if n%2 == 0 {
		return []string{v6, v4}
	}
	return []string{v4, v6}
}

// ip is an address with its reverse name.
func (a *API) ip(address, reverse, status string) ipJSON {
	version := "IPv4"
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.Is6() {
		version = "IPv6"
	}
	return ipJSON{ID: a.newID(), Address: address, Reverse: reverse, Version: version, ReverseStatus: status}
}

// install is the provider's installation of an operating system.
func (a *API) install(status, os, hostname string, keys []string) *installJSON {
	if keys == nil {
		keys = []string{}
	}
	return &installJSON{OsID: os, Hostname: hostname, SSHKeyIDs: keys, Status: status,
		User: "ubuntu", PartitioningSchema: []byte(partitioningSchema)}
}

// find gives a server, nil for none. The caller holds the lock.
func (a *API) find(id string) *server {
	i := slices.IndexFunc(a.servers, func(s *server) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return a.servers[i]
}

// server gives the server that a request names. One that is in another zone
// does not exist.
func (a *API) server(r *request) (*server, *problem) {
	s := a.find(r.PathValue("server"))
	if s == nil || s.Zone != r.PathValue("zone") {
		return nil, notFound()
	}
	return s, nil
}

// later makes something happen to the server after a while.
func (a *API) later(s *server, after time.Duration, apply func()) *change {
	s.pending = append(s.pending, change{at: a.now().Add(after), apply: apply})
	return &s.pending[len(s.pending)-1]
}

// settle lets everything happen that is due. The caller holds the lock.
func (a *API) settle() {
	now := a.now()
	for _, s := range slices.Clone(a.servers) {
		slices.SortStableFunc(s.pending, func(x, y change) int { return x.at.Compare(y.at) })
		for i := 0; i < len(s.pending); {
			c := s.pending[i]
			if c.stuck || c.at.After(now) {
				i++
				continue
			}
			s.pending = slices.Delete(s.pending, i, i+1)
			if !c.quiet {
				s.UpdatedAt = stamp(c.at)
			}
			c.apply()
			i = 0 // apply may have added some
		}
	}
}

// counted copies the counters.
func (s *server) counted() Counters {
	c := s.counters
	c.Reboots = maps.Clone(c.Reboots)
	if c.Reboots == nil {
		c.Reboots = map[string]int{}
	}
	return c
}

// view copies what an answer shows, so that later changes do not reach it.
func (s *server) view() serverJSON {
	v := s.serverJSON
	v.Tags = slices.Clone(v.Tags)
	v.IPs = append([]ipJSON{}, v.IPs...)
	v.Options = append([]optionJSON{}, v.Options...)
	if s.Install != nil {
		install := *s.Install
		v.Install = &install
	}
	if s.RescueServer != nil {
		rescue := *s.RescueServer
		v.RescueServer = &rescue
	}
	return v
}

// labTags adds the lab's tag.
func labTags(tags []string) []string {
	if slices.Contains(tags, LabTag) {
		return slices.Clone(tags)
	}
	return append(slices.Clone(tags), LabTag)
}

// domain is a server's name in the provider's DNS.
func domain(id, zone string) string { return id + "." + zone + ".baremetal.scw.cloud" }

// encode is user data as the API shows it.
func encode(data []byte) *string {
	s := base64.StdEncoding.EncodeToString(data)
	return &s
}
