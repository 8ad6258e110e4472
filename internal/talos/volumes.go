package talos

import (
	"regexp"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/ironlot/ironlot/internal/run"
)

// userVolumes lists the config's user volumes with what they ask of a disk.
func userVolumes(cfg config.Provider) []run.UserVolume {
	var out []run.UserVolume
	for _, volume := range cfg.UserVolumeConfigs() {
		v := run.UserVolume{Name: volume.Name(), MinSize: volume.Provisioning().MinSize().ValueOrZero()}
		if selector, ok := volume.Provisioning().DiskSelector().Get(); ok && !selector.IsZero() {
			v.Match = selector.String()
		}
		out = append(out, v)
	}
	return out
}

// VolumeFits reports whether one of a machine's disks, as rescue shows them,
// can hold a user volume. Known is false for a selector that asks for more
// than rescue and Talos tell alike: size, model and which disk is the system
// disk.
func VolumeFits(v run.UserVolume, disks []run.Disk, system run.Disk) (fits, known bool) {
	if v.Match == "" || asksForMore(v.Match) {
		return false, false
	}
	selector, err := cel.ParseBooleanExpression(v.Match, celenv.DiskLocator())
	if err != nil {
		return false, false // Talos's own check of the config says why
	}
	for _, d := range disks {
		matches, err := selector.EvalBool(celenv.DiskLocator(), map[string]any{
			"disk": &block.DiskSpec{Size: d.Size, Model: d.Model}, "system_disk": d == system,
		})
		if err != nil {
			return false, false
		}
		if matches && d.Size >= v.MinSize {
			return true, true
		}
	}
	return false, true
}

// asksForMore reports whether a selector looks at what rescue may show in
// another form than Talos, or not at all.
func asksForMore(match string) bool {
	for _, field := range regexp.MustCompile(`\bdisk\.(\w+)`).FindAllStringSubmatch(match, -1) {
		if !slices.Contains([]string{"size", "model"}, field[1]) {
			return true
		}
	}
	return false
}
