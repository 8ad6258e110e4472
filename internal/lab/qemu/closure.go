package qemu

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/fault"
)

// picker copies files of unpacked packages into a tree, each with the
// libraries that it needs.
type picker struct {
	root string // of the unpacked packages
	tree tree
}

// libraryDirs are where Debian keeps shared libraries.
func libraryDirs() []string {
	return []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64", "lib/systemd", "usr/lib/x86_64-linux-gnu/systemd", "usr/lib/sudo", "usr/libexec/sudo"}
}

// pick copies the files that match a pattern; one must.
func (p *picker) pick(patterns ...string) error {
	for _, pattern := range patterns {
		matches, err := filepath.Glob(filepath.Join(p.root, pattern))
		if err != nil {
			return err
		}
		if len(matches) == 0 {
			return fault.Operator("", "no package of the QEMU lab has the file %s", pattern)
		}
		for _, match := range matches {
			if err := p.file(strings.TrimPrefix(match, p.root+"/")); err != nil {
				return err
			}
		}
	}
	return nil
}

// file copies one file or link, what it points to, and the libraries.
func (p *picker) file(name string) error {
	if _, done := p.tree[name]; done {
		return nil
	}
	full := filepath.Join(p.root, name)
	info, err := os.Lstat(full)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(full)
		if err != nil {
			return err
		}
		p.tree.link(name, target)
		if strings.HasPrefix(target, "/") {
			return p.file(strings.TrimPrefix(target, "/"))
		}
		return p.file(path.Join(path.Dir(name), target))
	}
	data, err := os.ReadFile(full)
	if err != nil {
		return err
	}
	p.tree.file(name, info.Mode(), data)
	return p.libraries(full)
}

// libraries copies what a program or library needs to run.
func (p *picker) libraries(file string) error {
	f, err := elf.Open(file)
	var format *elf.FormatError
	if errors.As(err, &format) {
		return nil // a script or data
	}
	if err != nil {
		if info, statErr := os.Stat(file); statErr == nil && info.Size() < 64 {
			return nil // shorter than an ELF header
		}
		return err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if section := f.Section(".interp"); section != nil {
		loader, err := section.Data()
		if err != nil {
			return err
		}
		if err := p.file(strings.Trim(string(loader), "/\x00")); err != nil {
			return err
		}
	}
	for _, name := range needed {
		i := slices.IndexFunc(libraryDirs(), func(dir string) bool {
			_, err := os.Lstat(filepath.Join(p.root, dir, name))
			return err == nil
		})
		if i < 0 {
			return fault.Operator("", "%s needs the library %s, which no package of the QEMU lab has", strings.TrimPrefix(file, p.root), name)
		}
		if err := p.file(path.Join(libraryDirs()[i], name)); err != nil {
			return err
		}
	}
	return nil
}
