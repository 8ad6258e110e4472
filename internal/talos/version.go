package talos

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/gendata"
)

// imageVersion is a Talos version in the path of an image's URL, as the image
// factory and the releases have it: …/v1.13.8/metal-amd64.raw.zst.
var imageVersion = regexp.MustCompile(`/(v\d+\.\d+)\.\d+[^/]*/`)

// VersionTraps warns of an image whose Talos is not the one that the config was
// checked for. A URL that tells no version gives no warning.
func (r *Rendered) VersionTraps(imageURL string) []string {
	m := imageVersion.FindStringSubmatch(imageURL)
	if m == nil {
		return nil
	}
	image, err := config.ParseContractFromVersion(m[1])
	if err != nil {
		return nil
	}
	known, err := config.ParseContractFromVersion(gendata.VersionTag)
	if err != nil {
		return nil
	}
	checked := fmt.Sprintf("the image is of Talos %s, and the config was checked for %s", m[1], strings.Join(strings.Split(gendata.VersionTag, ".")[:2], "."))
	switch {
	case image.Greater(known):
		return []string{checked + ": a newer Talos may refuse or change what this one accepts"}
	case known.Greater(image) && r.multidocNetwork && !image.MultidocNetworkConfigSupported():
		return []string{checked + ": its network documents (HostnameConfig, LinkConfig, VLANConfig …) are refused by that Talos, which then stays in maintenance"}
	case known.Greater(image):
		return []string{checked + ": an older Talos refuses what it does not know, and then stays in maintenance"}
	}
	return nil
}
