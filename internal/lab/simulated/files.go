package simulated

import (
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/pkg/sftp"
)

// files shows a rescue system's files over SFTP. os.Root keeps every path
// inside.
type files struct{ root *os.Root }

func newFiles(dir string) (*files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &files{root}, nil
}

// Close ends the access.
func (f *files) Close() error { return f.root.Close() }

func local(path string) string {
	path = strings.TrimPrefix(path, "/")
	if path == "" {
		return "."
	}
	return path
}

// Fileread opens a file to read.
func (f *files) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	return f.root.Open(local(r.Filepath))
}

// Filewrite opens a file to write.
func (f *files) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	flags := os.O_WRONLY
	want := r.Pflags()
	for _, f := range []struct {
		asked bool
		flag  int
	}{{want.Creat, os.O_CREATE}, {want.Excl, os.O_EXCL}, {want.Trunc, os.O_TRUNC}} {
		if f.asked {
			flags |= f.flag
		}
	}
	return f.root.OpenFile(local(r.Filepath), flags, 0o600)
}

// Filecmd changes the tree.
func (f *files) Filecmd(r *sftp.Request) error {
	path := local(r.Filepath)
	switch r.Method {
	case "Mkdir":
		return f.root.Mkdir(path, 0o700)
	case "Remove", "Rmdir":
		return f.root.Remove(path)
	case "Rename":
		return f.root.Rename(path, local(r.Target))
	case "Setstat":
		if r.AttrFlags().Permissions {
			return f.root.Chmod(path, r.Attributes().FileMode().Perm())
		}
		return nil
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename replaces the target.
func (f *files) PosixRename(r *sftp.Request) error {
	return f.root.Rename(local(r.Filepath), local(r.Target))
}

// Filelist lists a directory or describes a file.
func (f *files) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	path := local(r.Filepath)
	if r.Method == "List" {
		dir, err := f.root.Open(path)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		entries, err := dir.Readdir(-1)
		return lister(entries), err
	}
	info, err := f.root.Stat(path)
	if err != nil {
		return nil, err
	}
	return lister{info}, nil
}

type lister []fs.FileInfo

// ListAt gives entries from an offset on.
func (l lister) ListAt(to []fs.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(to, l[offset:])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}
