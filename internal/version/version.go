// Package version tells which build of Ironlot runs.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Build is what a program answers when it is asked which build it is.
type Build struct {
	Program string `json:"program"`
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Of is the build of a program.
func Of(program string) Build {
	return Build{Program: program, Version: String(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
}

// String is the build for people.
func (b Build) String() string {
	return fmt.Sprintf("ironlot %s %s (%s %s/%s)", b.Program, b.Version, b.Go, b.OS, b.Arch)
}

// String is the module's version, or the commit it was built from.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit == "" {
		return "devel"
	}
	return "devel-" + commit + dirty
}
