package scwapi

import (
	"slices"
	"time"
)

// metadata is where the SDK reads the names that go into resource names.
func (a *API) metadata(*request) (any, *problem) {
	return map[string]string{"platform": "lab", "partition": "lab", "domain": "lab.invalid"}, nil
}

// getAPIKey is what `scw init` and `scw info` ask about the key in use.
func (a *API) getAPIKey(r *request) (any, *problem) {
	access := r.PathValue("access")
	if !slices.ContainsFunc(a.keys, func(k Key) bool { return k.AccessKey == access }) {
		return nil, noResource("api_key", access)
	}
	return map[string]any{
		"access_key": access, "secret_key": nil, "application_id": "1ab00000-0000-4000-8000-000000000004",
		"description": "lab", "created_at": epoch(), "updated_at": epoch(), "expires_at": nil,
		"default_project_id": ProjectID, "editable": false, "deletable": false, "managed": true, "creation_ip": "127.0.0.1",
	}, nil
}

// project is the lab's only project.
func project() map[string]any {
	return map[string]any{
		"id": ProjectID, "name": "lab", "organization_id": OrganizationID, "description": "simulated by Ironlot",
		"created_at": epoch(), "updated_at": epoch(), "qualification": nil,
	}
}

func (a *API) listProjects(r *request) (any, *problem) {
	return page(r, "projects", []map[string]any{project()})
}

func (a *API) getProject(r *request) (any, *problem) {
	if id := r.PathValue("project"); id != ProjectID {
		return nil, noResource("project", id)
	}
	return project(), nil
}

// epoch is when the lab's account was made.
func epoch() stamp { return stamp(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) }

// emptyList answers lists that the provider's CLI asks for and that the lab
// has nothing in.
func (a *API) emptyList(name string) handler {
	return func(r *request) (any, *problem) { return page(r, name, []struct{}{}) }
}
