package scwapi

import "net/http"

// zones are those with Elastic Metal.
func zones() []string {
	return []string{"fr-par-1", "fr-par-2", "nl-ams-1", "nl-ams-2", "pl-waw-2", "pl-waw-3"}
}

// regions are those of the zones.
func regions() []string { return []string{"fr-par", "nl-ams", "pl-waw"} }

// route is one operation under the SDK's name.
type route struct {
	pattern   string
	operation string
	handler   handler
}

// routes builds the table. Whatever is not in it is 404.
func (a *API) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, group := range [][]route{
		a.serverRoutes(), a.networkRoutes(), a.catalogRoutes(), a.accountRoutes(), a.labRoutes(),
	} {
		for _, r := range group {
			a.operations = append(a.operations, r.operation)
			mux.HandleFunc(r.pattern, a.serve(r.operation, r.handler))
		}
	}
	mux.HandleFunc("/", a.serve("Unknown", func(*request) (any, *problem) { return nil, notFound() }))
	return mux
}

func (a *API) serverRoutes() []route {
	const servers = "/baremetal/v1/zones/{zone}/servers"
	const server = servers + "/{server}"
	return []route{
		{"GET " + servers, "ListServers", a.listServers},
		{"POST " + servers, "CreateServer", a.createServer},
		{"GET " + server, "GetServer", a.getServer},
		{"PATCH " + server, "UpdateServer", a.updateServer},
		{"DELETE " + server, "DeleteServer", a.deleteServer},
		{"POST " + server + "/install", "InstallServer", a.installServer},
		{"POST " + server + "/reboot", "RebootServer", a.rebootServer},
		{"POST " + server + "/start", "StartServer", a.startServer},
		{"POST " + server + "/stop", "StopServer", a.stopServer},
		{"GET " + server + "/events", "ListServerEvents", a.listEvents},
		{"POST " + server + "/options/{option}", "AddOptionServer", a.addOption},
		{"DELETE " + server + "/options/{option}", "DeleteOptionServer", a.deleteOption},
	}
}

func (a *API) networkRoutes() []route {
	const vpc = "/vpc/v2/regions/{region}/private-networks"
	routes := []route{
		{"GET " + vpc, "ListPrivateNetworks", a.listVPCNetworks},
		{"POST " + vpc, "CreatePrivateNetwork", a.createVPCNetwork},
		{"GET " + vpc + "/{network}", "GetPrivateNetwork", a.getVPCNetwork},
		{"DELETE " + vpc + "/{network}", "DeletePrivateNetwork", a.deleteVPCNetwork},
	}
	for _, version := range []string{"v1", "v3"} {
		zone := "/baremetal/" + version + "/zones/{zone}"
		server := zone + "/servers/{server}/private-networks"
		routes = append(routes,
			route{"GET " + zone + "/server-private-networks", "ListServerPrivateNetworks", a.listAttachments},
			route{"PUT " + server, "SetServerPrivateNetworks", a.setAttachments},
			route{"POST " + server, "AddServerPrivateNetwork", a.addAttachment},
			route{"DELETE " + server + "/{network}", "DeleteServerPrivateNetwork", a.deleteAttachment},
		)
	}
	return routes
}

func (a *API) catalogRoutes() []route {
	const zone = "/baremetal/v1/zones/{zone}"
	return []route{
		{"GET " + zone + "/offers", "ListOffers", a.listOffers},
		{"GET " + zone + "/offers/{offer}", "GetOffer", a.getOffer},
		{"GET " + zone + "/os", "ListOS", a.listOS},
		{"GET " + zone + "/os/{os}", "GetOS", a.getOS},
		{"GET " + zone + "/options", "ListOptions", a.listOptions},
		{"GET " + zone + "/options/{option}", "GetOption", a.getOption},
		{"GET " + zone + "/partitioning-schemas/default", "GetDefaultPartitioningSchema", a.defaultSchema},
	}
}

func (a *API) accountRoutes() []route {
	const keys = "/iam/v1alpha1/ssh-keys"
	return []route{
		{"GET /metadata", "GetAPIMetadata", a.metadata},
		{"GET " + keys, "ListSSHKeys", a.listSSHKeys},
		{"POST " + keys, "CreateSSHKey", a.createSSHKey},
		{"GET " + keys + "/{key}", "GetSSHKey", a.getSSHKey},
		{"DELETE " + keys + "/{key}", "DeleteSSHKey", a.deleteSSHKey},
		{"GET /iam/v1alpha1/api-keys/{access}", "GetAPIKey", a.getAPIKey},
		{"GET /iam/v1alpha1/policies", "ListPolicies", a.emptyList("policies")},
		{"GET /product-catalog/v2alpha1/public-catalog/products", "ListPublicCatalogProducts", a.emptyList("products")},
		{"GET /account/v3/projects", "ListProjects", a.listProjects},
		{"GET /account/v3/projects/{project}", "GetProject", a.getProject},
	}
}

// labRoutes are the lab's own: faults and counters.
func (a *API) labRoutes() []route {
	return []route{
		{"GET /lab/faults", "ListFaults", a.listFaults},
		{"POST /lab/faults", "AddFault", a.addFault},
		{"DELETE /lab/faults", "ClearFaults", a.clearFaults},
		{"GET /lab/servers", "ListCounters", a.listCounters},
	}
}
