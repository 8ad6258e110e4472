package talos

import (
	"errors"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"

	"github.com/ironlot/ironlot/internal/fault"
)

// Named is a document with the name under which errors speak of it, usually
// its file's path.
type Named struct {
	Name string
	Data []byte
}

// RenderInput is what a node's machine config is made of.
type RenderInput struct {
	Base     Named
	Patches  []Named // applied in order: strategic merge or JSON 6902
	Hostname string  // empty: the config decides
	// Values take the place of ${ironlot.NAME} in base and patches.
	Values map[string]string
}

// Render makes a node's machine config: the base, the patches in order, the
// hostname, then every check that can be made without the node. Errors are
// NeedsOperator, one for each mistake, joined.
func Render(in RenderInput) (rendered *Rendered, err error) {
	origin := place(in.Base.Name, in.Patches)
	defer guard(origin, &err)

	in.Patches = slices.Clone(in.Patches)
	base, patches, err := load(in)
	if err != nil {
		return nil, err
	}
	cfg, err := applyAll(base, in, patches)
	if err != nil {
		return nil, err
	}
	if cfg, err = setHostname(cfg, in.Hostname, origin); err != nil {
		return nil, err
	}
	data, err := cfg.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, problem(Named{Name: origin, Data: in.Base.Data}, "cannot be encoded", err)
	}
	return Inspect(Named{Name: origin, Data: data})
}

// load reads the base and all patches and reports their mistakes together.
func load(in RenderInput) (config.Provider, []configpatcher.Patch, error) {
	var problems []error
	base, err := loadBase(in.Base, in.Values)
	if err != nil {
		problems = append(problems, err)
	}
	patches := make([]configpatcher.Patch, len(in.Patches))
	for i, named := range in.Patches {
		if patches[i], in.Patches[i], err = loadPatch(named, in.Values); err != nil {
			problems = append(problems, err)
		}
	}
	return base, patches, errors.Join(problems...)
}

func loadBase(in Named, values map[string]string) (config.Provider, error) {
	in, err := expand(in, values)
	if err != nil {
		return nil, err
	}
	return parse(in)
}

// applyAll applies the patches in order. One that cannot be applied is passed
// over, to find out whether the others can.
func applyAll(cfg config.Provider, in RenderInput, patches []configpatcher.Patch) (config.Provider, error) {
	var problems []error
	for i, patch := range patches {
		patched, err := apply(cfg, in.Base.Name, in.Patches[i], patch)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		cfg = patched
	}
	return cfg, errors.Join(problems...)
}

// parse loads a machine config with machinery, which refuses unknown keys,
// unknown kinds and documents that are there twice.
func parse(in Named) (config.Provider, error) {
	cfg, err := configloader.NewFromBytes(in.Data)
	if errors.Is(err, configloader.ErrNoConfig) {
		return nil, fault.Operator("put the machine config into it", "%s is empty", in.Name)
	}
	if err != nil {
		return nil, problem(in, "is not a machine config of Talos 1.13", err)
	}
	return cfg, nil
}

// loadPatch gives a patch, and its text with the values in it.
func loadPatch(in Named, values map[string]string) (configpatcher.Patch, Named, error) {
	in, err := expand(in, values)
	if err != nil {
		return nil, in, err
	}
	// Machinery takes an empty file for an empty JSON patch.
	_, err = configloader.NewFromBytes(in.Data, configloader.WithAllowPatchDelete())
	if errors.Is(err, configloader.ErrNoConfig) {
		return nil, in, fault.Operator("put a patch into it or leave it out", "%s is empty", in.Name)
	}
	patch, err := configpatcher.LoadPatch(in.Data)
	if err != nil {
		return nil, in, problem(in, "is neither a strategic merge patch nor a JSON 6902 patch", err)
	}
	return patch, in, nil
}

// apply applies one patch, so that its name can stand in the error.
func apply(cfg config.Provider, base string, in Named, patch configpatcher.Patch) (config.Provider, error) {
	_, strategic := patch.(configpatcher.StrategicMergePatch)
	if n := len(cfg.Documents()); !strategic && n > 1 {
		return nil, fault.Operator("write it as a strategic merge patch",
			"%s is a JSON 6902 patch, which Talos takes for a single document only, and %s has %d", in.Name, base, n)
	}
	out, err := configpatcher.Apply(configpatcher.WithConfig(cfg), []configpatcher.Patch{patch})
	if err != nil {
		return nil, problem(in, "cannot be applied to "+base, err)
	}
	patched, err := out.Config()
	if err != nil {
		return nil, problem(in, "makes "+base+" invalid", err)
	}
	return patched, nil
}

// problem is machinery's error about a document, without secrets.
func problem(in Named, what string, err error) error {
	var problems []error
	for _, text := range flatten(err) {
		problems = append(problems, fault.Operator("", "%s %s: %s", in.Name, what, redact(text, in.Data)))
	}
	return errors.Join(problems...)
}

// guard turns a panic of machinery on input that it did not expect into an
// error. The panic's value is left out: it could quote the config.
func guard(origin string, err *error) {
	if recover() != nil {
		*err = fault.Operator("check it with `talosctl validate --mode metal`",
			"%s makes Talos's own config code crash", origin)
	}
}
