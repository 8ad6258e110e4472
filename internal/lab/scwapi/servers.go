package scwapi

import (
	"bytes"
	"slices"
	"strings"
)

func (a *API) listServers(r *request) (any, *problem) {
	query := r.URL.Query()
	var found []serverJSON
	for _, s := range a.servers {
		fits := s.Zone == r.PathValue("zone") &&
			wants(query["tags"], s.Tags...) &&
			wants(query["project_id"], s.ProjectID) &&
			wants(query["organization_id"], s.OrganizationID) &&
			strings.Contains(s.Name, query.Get("name"))
		if statuses := query["status"]; len(statuses) > 0 && !slices.Contains(statuses, s.Status) {
			fits = false
		}
		if id := query.Get("option_id"); id != "" && !slices.ContainsFunc(s.Options, func(o optionJSON) bool { return o.ID == id }) {
			fits = false
		}
		if fits {
			found = append(found, a.shown(r, s))
		}
	}
	return page(r, "servers", found)
}

// wants reports whether all wanted values are among those there are.
func wants(wanted []string, have ...string) bool {
	for _, w := range wanted {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

func (a *API) getServer(r *request) (any, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	return a.shown(r, s), nil
}

// shown is the server as it is, or as it was, by fault.
func (a *API) shown(r *request, s *server) serverJSON {
	if s.before == nil {
		return s.view()
	}
	f := a.faults.hit(StaleStatus, r.operation, s.ID)
	if f == nil || f.Delay > 0 && a.now().Sub(s.actedAt) >= f.Delay {
		return s.view()
	}
	return *s.before
}

// orderJSON is the body of an order.
type orderJSON struct {
	OfferID     string     `json:"offer_id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Tags        []string   `json:"tags"`
	Install     *setupJSON `json:"install"`
	OptionIDs   []string   `json:"option_ids"`
	Protected   bool       `json:"protected"`
	UserData    []byte     `json:"user_data"`
}

// setupJSON is the body of an installation.
type setupJSON struct {
	OsID      string   `json:"os_id"`
	Hostname  string   `json:"hostname"`
	SSHKeyIDs []string `json:"ssh_key_ids"`
}

func (a *API) createServer(r *request) (any, *problem) {
	var order orderJSON
	if p := r.decode(&order); p != nil {
		return nil, p
	}
	offer, ok := findByID(offers(r.PathValue("zone")), order.OfferID)
	if !ok {
		return nil, noResource("offer", order.OfferID)
	}
	if order.Name == "" {
		return nil, invalid("name", "is required")
	}
	if p := checkUserData(offer, order.UserData); p != nil {
		return nil, p
	}
	if p := a.checkSetup(order.Install); p != nil {
		return nil, p
	}
	zone, now := r.PathValue("zone"), a.stamp()
	s := &server{serverJSON: serverJSON{
		ID: a.newID(), OrganizationID: OrganizationID, ProjectID: ProjectID,
		Name: order.Name, Description: order.Description, Zone: zone,
		Status: "ordered", BootType: "normal", PingStatus: "ping_status_unknown",
		CreatedAt: now, UpdatedAt: now,
		OfferID: offer.ID, OfferName: offer.Name,
		Tags: labTags(order.Tags), Protected: order.Protected,
	}}
	if order.UserData != nil {
		s.UserData = encode(order.UserData)
	}
	for _, id := range order.OptionIDs {
		option, ok := findByID(options(), id)
		if !ok {
			return nil, noResource("option", id)
		}
		s.Options = append(s.Options, option.on("option_status_enable"))
	}
	ordered := s.view()
	a.deliver(s, order.Install)
	ordered.Install = s.view().Install
	a.servers = append(a.servers, s)
	return ordered, nil
}

// deliver gives the new server its addresses at once and the rest in time.
func (a *API) deliver(s *server, setup *setupJSON) {
	for _, address := range a.freshAddresses(nil) {
		s.IPs = append(s.IPs, a.ip(address, "", "unknown"))
	}
	a.later(s, a.latency.Deliver, func() { s.Status = "ready" })
	if setup != nil {
		a.beginInstall(s, *setup, a.latency.Deliver)
	}
}

// updateJSON is the body of an update; nil leaves a field alone.
type updateJSON struct {
	Name        *string   `json:"name"`
	Description *string   `json:"description"`
	Tags        *[]string `json:"tags"`
	Protected   *bool     `json:"protected"`
	UserData    *[]byte   `json:"user_data"`
}

func (a *API) updateServer(r *request) (any, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	var update updateJSON
	if p := r.decode(&update); p != nil {
		return nil, p
	}
	if update.UserData != nil {
		offer, _ := findByID(offers(s.Zone), s.OfferID)
		if p := checkUserData(offer, *update.UserData); p != nil {
			return nil, p
		}
		s.UserData = encode(*update.UserData)
	}
	if update.Name != nil {
		s.Name = *update.Name
	}
	if update.Description != nil {
		s.Description = *update.Description
	}
	if update.Tags != nil {
		s.Tags = labTags(*update.Tags)
	}
	if update.Protected != nil {
		s.Protected = *update.Protected
	}
	s.UpdatedAt = a.stamp()
	return s.view(), nil
}

func (a *API) deleteServer(r *request) (any, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	if s.Protected {
		s.counters.Refused++
		return nil, precondition("the server is protected")
	}
	s.Status, s.UpdatedAt, s.pending = "deleting", a.stamp(), nil
	answer := s.view()
	for i := range s.Options {
		s.Options[i].Status = "option_status_disabling"
	}
	a.command(s, closeMachine)
	a.later(s, a.latency.Delete, func() {
		a.servers = slices.DeleteFunc(a.servers, func(other *server) bool { return other == s })
	})
	return answer, nil
}

func (a *API) listEvents(r *request) (any, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	return page(r, "events", s.events)
}

// checkUserData refuses what cloud-init cannot use. That an offer without
// cloud-init is a 503 is recorded; the same for an iPXE script is assumed.
func checkUserData(offer offerJSON, data []byte) *problem {
	switch {
	case data == nil:
		return nil
	case !slices.Contains(offer.Tags, cloudInitTag):
		return noCloudInit("cloud-init is not supported on this offer")
	case bytes.HasPrefix(data, []byte("#!ipxe")):
		return noCloudInit("user data is not a format of cloud-init")
	}
	return nil
}
