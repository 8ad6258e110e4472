package qemu

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// tree is the content of a RAM disk by path, without a leading slash.
type tree map[string]entry

// entry is a file, a directory, a symbolic link or a device.
type entry struct {
	mode fs.FileMode // with the type bits
	data []byte      // content, or the target of a link
	dev  [2]uint32   // major and minor of a device
}

func (t tree) file(name string, mode fs.FileMode, data []byte) {
	t[name] = entry{mode: mode.Perm() | mode&fs.ModeSetuid, data: data}
}

func (t tree) link(name, target string) {
	t[name] = entry{mode: fs.ModeSymlink | 0o777, data: []byte(target)}
}

func (t tree) dir(name string, mode fs.FileMode) {
	t[name] = entry{mode: fs.ModeDir | mode}
}

func (t tree) charDevice(name string, major, minor uint32) {
	t[name] = entry{mode: fs.ModeDevice | fs.ModeCharDevice | 0o600, dev: [2]uint32{major, minor}}
}

// parents adds the directories above every entry.
func (t tree) parents() {
	for _, name := range slices.Collect(maps.Keys(t)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := t[dir]; !ok {
				t.dir(dir, 0o755)
			}
		}
	}
}

// writeCPIO writes the tree in the newc format that the kernel unpacks
// (Documentation/driver-api/early-userspace/buffer-format.rst). Equal trees
// make equal bytes: names are sorted, everything belongs to root, times are 0.
func writeCPIO(w io.Writer, t tree) error {
	t.parents()
	c := &cpioWriter{w: w}
	for i, name := range slices.Sorted(maps.Keys(t)) {
		c.entry(i+1, name, t[name])
	}
	c.entry(0, "TRAILER!!!", entry{})
	return c.err
}

type cpioWriter struct {
	w   io.Writer
	n   int
	err error
}

func (c *cpioWriter) entry(inode int, name string, e entry) {
	header := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		inode, unixMode(e.mode), 0, 0, 1, 0, len(e.data), 0, 0, e.dev[0], e.dev[1], len(name)+1, 0)
	c.write([]byte(header + name + "\x00"))
	c.pad()
	c.write(e.data)
	c.pad()
}

func (c *cpioWriter) write(p []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(p)
		c.n += len(p)
	}
}

func (c *cpioWriter) pad() { c.write(make([]byte, -c.n&3)) }

// unixMode is st_mode of stat(2).
func unixMode(mode fs.FileMode) uint32 {
	m := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		m |= 0o4000
	}
	switch {
	case mode == 0:
		return 0
	case mode&fs.ModeDir != 0:
		return m | 0o040000
	case mode&fs.ModeSymlink != 0:
		return m | 0o120000
	case mode&fs.ModeCharDevice != 0:
		return m | 0o020000
	default:
		return m | 0o100000
	}
}
