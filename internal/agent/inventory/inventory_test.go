package inventory_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/inventory"
	"github.com/ironlot/ironlot/internal/fault"
)

const mib = 1 << 20

func take(t *testing.T, d *hosttest.Disk) api.Disk {
	t.Helper()
	inv, err := inventory.Take(t.Context(), hosttest.New(t, d))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Ops()) > 0 {
		t.Errorf("the inventory changed the disk: %v", d.Ops())
	}
	return inv.Disks[0]
}

func has(d api.Disk, want api.Signature) bool { return slices.Contains(d.Signatures, want) }

func TestPartitions(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "sda", "A", 64*mib)
	head, tail, err := gpt.Encode(64*mib, 512, gpt.Table{DiskGUID: gpt.NewGUID(), Partitions: []gpt.Partition{
		{Number: 2, Name: "STATE", Type: gpt.NewGUID(), Offset: mib, Size: 8 * mib},
	}})
	if err != nil {
		t.Fatal(err)
	}
	d.Put(t, head, 0)
	d.Put(t, tail, 64*mib-int64(len(tail)))
	d.Put(t, append([]byte("XFSB"), make([]byte, 200)...), mib)
	d.Put(t, []byte("LABEL"), mib+0x6c)
	// The kernel has a name for one partition, and still knows a removed one.
	d.Info.Parts = []api.Partition{{Number: 2, Name: "sda2", Offset: mib, Size: 8 * mib}, {Number: 9, Name: "sda9", Offset: 32 * mib, Size: mib}}
	d.Put(t, []byte("LUKS\xba\xbe"), 32*mib)
	got := take(t, d)
	if got.Table != "gpt" || got.Blank || len(got.Parts) != 2 {
		t.Fatalf("%+v", got)
	}
	p := got.Parts[0]
	if p.Name != "sda2" || p.Label != "STATE" || !slices.Contains(p.Signatures, api.Signature{Type: "xfs", Label: "LABEL"}) {
		t.Errorf("%+v", p)
	}
	if p := got.Parts[1]; p.Name != "sda9" || !slices.Contains(p.Signatures, api.Signature{Type: "crypto_LUKS"}) {
		t.Errorf("a partition that only the kernel knows: %+v", p)
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "sda", "A", 64*mib)
	if got := take(t, d); got.Blank || got.Table != "" || len(got.Signatures) > 0 {
		t.Errorf("zeros: %+v", got)
	}
	head, tail, err := gpt.Blank(64*mib, 512)
	if err != nil {
		t.Fatal(err)
	}
	d.Put(t, head, 0)
	if got := take(t, d); got.Blank {
		t.Error("a table without backup counts as blank")
	}
	d.Put(t, tail, 64*mib-int64(len(tail)))
	want := []api.Signature{{Type: "gpt", Offset: 512}, {Type: "gpt", Offset: 64*mib - 512}, {Type: "PMBR", Offset: 510}}
	if got := take(t, d); !got.Blank || got.Table != "gpt" || !slices.Equal(got.Signatures, want) {
		t.Errorf("%+v", got)
	}
}

// TestWrongSectorSize has a table for sectors of 512 on a disk of 4096.
func TestWrongSectorSize(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "sda", "A", 64*mib)
	d.Info.SectorSize = 4096
	head, _, err := gpt.Blank(64*mib, 512)
	if err != nil {
		t.Fatal(err)
	}
	d.Put(t, head, 0)
	if got := take(t, d); got.Table == "gpt" || got.Blank || !has(got, api.Signature{Type: "gpt", Offset: 512}) {
		t.Errorf("%+v", got)
	}
}

func TestMDSets(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "sda", "A", 64*mib)
	super := make([]byte, 256)
	copy(super, "\xfc\x4e\x2b\xa9\x01")
	copy(super[16:], "0123456789abcdefhost:7")
	d.Put(t, super, 4096)
	want := api.Signature{Type: "linux_raid_member", Offset: 4096, Label: "host:7", Set: "30313233343536373839616263646566"}
	if got := take(t, d); !has(got, want) {
		t.Errorf("%+v, want %+v", got.Signatures, want)
	}
	super[4] = 9
	d.Put(t, super, 4096)
	if got := take(t, d); len(got.Signatures) > 0 {
		t.Errorf("an unknown version: %+v", got.Signatures)
	}
}

// TestExtendedLoop has extended boot records that point at each other.
func TestExtendedLoop(t *testing.T) {
	t.Parallel()
	d := hosttest.NewDisk(t, "sda", "A", 64*mib)
	record := make([]byte, 512)
	entry := func(i int, kind byte, start, size uint32) {
		e := record[446+16*i:]
		e[4] = kind
		binary.LittleEndian.PutUint32(e[8:], start)
		binary.LittleEndian.PutUint32(e[12:], size)
	}
	record[510], record[511] = 0x55, 0xaa
	entry(0, 0x83, 2048, 2048)
	entry(1, 0x05, 8192, 65536)
	d.Put(t, record, 0)
	entry(0, 0x83, 1, 100)
	entry(1, 0x05, 4096, 4096)
	d.Put(t, record, 8192*512)
	entry(1, 0x05, 0, 0)
	entry(1, 0x05, 4096, 4096)
	d.Put(t, record, (8192+4096)*512)
	got := take(t, d)
	if got.Table != "dos" || len(got.Parts) != 2+60 || got.Parts[2].Number != 5 {
		t.Errorf("table %q, %d partitions", got.Table, len(got.Parts))
	}
}

func TestUnreadableDisk(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, hosttest.NewDisk(t, "sda", "A", mib))
	broken := &brokenHost{Host: h}
	if _, err := inventory.Take(t.Context(), broken); fault.ClassOf(err) != fault.Transient || !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

var errBroken = errors.New("broken")

type brokenHost struct{ host.Host }

func (h *brokenHost) OpenDisk(context.Context, string, bool) (host.Disk, error) {
	return memory{bytes.NewReader(nil), mib, 512, errBroken}, nil
}

// memory is a read-only disk in memory.
type memory struct {
	*bytes.Reader
	size   int64
	sector int
	err    error
}

func (m memory) Size() int64     { return m.size }
func (m memory) SectorSize() int { return m.sector }

func (m memory) ReadDirectAt(p []byte, off int64) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.ReadAt(p, off)
	if n < len(p) && errors.Is(err, io.EOF) && off+int64(len(p)) <= m.size {
		clear(p[n:]) // zeros behind what is given
		return len(p), nil
	}
	return n, err
}

func (m memory) WriteAt([]byte, int64) (int, error) { return 0, errBroken }

func (m memory) Zero(context.Context, int64, int64) (string, error) { return "", errBroken }

func (m memory) Sync() error   { return errBroken }
func (m memory) Reread() error { return errBroken }
func (m memory) Close() error  { return nil }

type memoryHost struct {
	host.Host
	disk memory
}

func (h memoryHost) OpenDisk(context.Context, string, bool) (host.Disk, error) { return h.disk, nil }

// FuzzRead has a disk hold anything at its start: nothing panics, and what is
// found lies on the disk.
func FuzzRead(f *testing.F) {
	const size = 128 << 10
	head, _, _ := gpt.Encode(size, 512, gpt.Table{Partitions: []gpt.Partition{{Number: 1, Name: "META", Type: gpt.NewGUID(), Offset: 64 << 10, Size: 4096}}})
	f.Add(head, 512)
	f.Add(append([]byte("LABELONE"), make([]byte, 504)...), 4096)
	label := make([]byte, 1024)
	copy(label[512:], "LABELONE")
	copy(label[512+20:], "\x20\x00\x00\x00LVM2 001")
	f.Add(label, 512)
	dos := make([]byte, 512)
	copy(dos[446+4:], "\x05\x00\x00\x00\x01\x00\x00\x00\xff\x00\x00\x00")
	dos[510], dos[511] = 0x55, 0xaa
	f.Add(dos, 512)
	f.Fuzz(func(t *testing.T, start []byte, sector int) {
		h := memoryHost{disk: memory{bytes.NewReader(start), size, sector, nil}}
		if len(start) > size {
			t.Skip()
		}
		d := api.Disk{Name: "sda", Size: size, SectorSize: sector}
		if err := inventory.Read(t.Context(), h, &d); err != nil {
			t.Fatal(err)
		}
		for _, s := range d.Signatures {
			if s.Offset >= size {
				t.Errorf("a signature off the disk: %+v", s)
			}
		}
	})
}
