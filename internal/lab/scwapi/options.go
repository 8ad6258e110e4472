package scwapi

import "slices"

// privateNetworkOption is the option that private networks need.
func privateNetworkOption(status string) optionJSON {
	option, _ := findByID(options(), privateNetworkID)
	return option.on(status)
}

func (a *API) addOption(r *request) (any, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	option, ok := findByID(options(), r.PathValue("option"))
	if !ok {
		return nil, noResource("option", r.PathValue("option"))
	}
	if s.option(option.ID) != nil {
		return nil, precondition("the option is enabled already")
	}
	s.Options = append(s.Options, option.on("option_status_enabling"))
	a.later(s, a.latency.Option, func() {
		if on := s.option(option.ID); on != nil {
			on.Status = "option_status_enable"
		}
		if option.ID == privateNetworkID {
			s.Tags = append(s.Tags, "PrivateNetwork") // as recorded
		}
	})
	return s.view(), nil
}

func (a *API) deleteOption(r *request) (any, *problem) {
	s, p := a.server(r)
	if p != nil {
		return nil, p
	}
	id := r.PathValue("option")
	on := s.option(id)
	if on == nil {
		return nil, noResource("option", id)
	}
	on.Status = "option_status_disabling"
	a.later(s, a.latency.Option, func() {
		s.Options = slices.DeleteFunc(s.Options, func(o optionJSON) bool { return o.ID == id })
	})
	return s.view(), nil
}

// option gives an option of the server, nil for none.
func (s *server) option(id string) *optionJSON {
	for i := range s.Options {
		if s.Options[i].ID == id {
			return &s.Options[i]
		}
	}
	return nil
}
