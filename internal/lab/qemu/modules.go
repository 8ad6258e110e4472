package qemu

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kernel is the kernel of the unpacked packages.
type kernel struct {
	image   string            // path of vmlinuz
	version string            // as uname -r says
	modules map[string]string // path by name, with underscores
	builtin []string
}

func findKernel(root string) (kernel, error) {
	images, err := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return kernel{}, fmt.Errorf("the kernel package has %d kernels, not one", len(images))
	}
	k := kernel{image: images[0], modules: map[string]string{}}
	k.version = strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	dir := filepath.Join(root, "lib/modules", k.version)
	builtin, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return k, err
	}
	for line := range strings.Lines(string(builtin)) {
		k.builtin = append(k.builtin, moduleName(strings.TrimSpace(line)))
	}
	return k, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".ko") {
			k.modules[moduleName(path)] = path
		}
		return err
	})
}

func moduleName(path string) string {
	return strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".ko"), "-", "_")
}

// add puts modules and what they depend on into the tree, and their order
// into lib/modules/order, so that no modprobe is needed.
func (k kernel) add(t tree, names ...string) error {
	var order []string
	for _, name := range names {
		if err := k.load(t, &order, name); err != nil {
			return err
		}
	}
	t.file("lib/modules/order", 0o644, []byte(strings.Join(order, "\n")+"\n"))
	return nil
}

func (k kernel) load(t tree, order *[]string, name string) error {
	to := "lib/modules/" + name + ".ko"
	if slices.Contains(k.builtin, name) || slices.Contains(*order, "/"+to) {
		return nil
	}
	path, ok := k.modules[name]
	if !ok {
		return fmt.Errorf("kernel %s has no module %s", k.version, name)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	needs, err := dependencies(data)
	if err != nil {
		return fmt.Errorf("module %s: %w", name, err)
	}
	for _, need := range needs {
		if err := k.load(t, order, strings.ReplaceAll(need, "-", "_")); err != nil {
			return err
		}
	}
	t.file(to, 0o644, data)
	*order = append(*order, "/"+to)
	return nil
}

// dependencies reads what a module says of itself.
func dependencies(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, nil
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(line, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
