package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

const gb = 1_000_000_000

func disk(name, serial string, size uint64) api.Disk {
	return api.Disk{Name: name, Serial: serial, WWN: "naa.5000" + strings.ToLower(serial), ByID: []string{"ata-" + serial, "wwn-0x5000" + strings.ToLower(serial)},
		Model: "MODEL", Size: size, SectorSize: 512}
}

func refusal(t *testing.T, err error, words ...string) {
	t.Helper()
	e, ok := fault.As(err)
	if !ok || e.Class != fault.NeedsOperator || e.Remedy == "" {
		t.Fatalf("%v is no NeedsOperator error with a remedy", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	stick := disk("sdc", "STICK", 8*gb)
	stick.Removable = true
	locked := disk("sdd", "LOCKED", 16*gb)
	locked.ReadOnly = true
	disks := []api.Disk{disk("sda", "A", 480*gb), disk("sdb", "B", 960*gb), stick, locked, disk("sde", "E", 960*gb)}
	for _, tt := range []struct {
		name string
		rule run.DiskChoice
		want string // serial, or words of the refusal
		ok   bool
	}{
		{"serial", run.DiskChoice{Serial: "B"}, "B", true},
		{"WWN", run.DiskChoice{WWN: "0x5000A"}, "A", true},
		{"by-id", run.DiskChoice{ByID: "ata-E"}, "E", true},
		{"by-id path", run.DiskChoice{ByID: "/dev/disk/by-id/wwn-0x5000e"}, "E", true},
		{"smallest", run.DiskChoice{Smallest: true}, "A", true},
		{"max size", run.DiskChoice{MaxSize: 500 * gb}, "A", true},
		{"smallest is not unique", run.DiskChoice{Smallest: true, MinSize: 500 * gb}, "fits 2 disks", false},
		{"size is not unique", run.DiskChoice{MinSize: 1}, "fits 3 disks", false},
		{"too small for all", run.DiskChoice{MaxSize: 400 * gb}, "at most 400 GB (372.5 GiB)", false},
		{"unknown", run.DiskChoice{Serial: "X"}, "A, MODEL, 447.0 GiB, now sda", false},
		{"removable", run.DiskChoice{Serial: "STICK"}, "(removable)", false},
		{"read-only", run.DiskChoice{Serial: "LOCKED"}, "(read-only)", false},
		{"no rule", run.DiskChoice{}, "not one rule", false},
		{"two rules", run.DiskChoice{Serial: "A", WWN: "x"}, "not one rule", false},
		{"serial with size", run.DiskChoice{Serial: "A", MinSize: 1}, "not one rule", false},
		{"sizes reversed", run.DiskChoice{MinSize: 2, MaxSize: 1}, "not one rule", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := plan.Choose(disks, tt.rule)
			if !tt.ok {
				refusal(t, err, tt.want)
				return
			}
			if err != nil || got.Serial != tt.want {
				t.Errorf("got %q, %v", got.Serial, err)
			}
		})
	}
}

// TestChooseTellsWhatCannotBeToldApart: no serial helps with twins, and where
// there is another disk that fits, only that one is offered.
func TestChooseTellsWhatCannotBeToldApart(t *testing.T) {
	t.Parallel()
	twins := []api.Disk{disk("sda", "TWIN", gb), disk("sdb", "TWIN", gb)}
	_, err := plan.Choose(twins, run.DiskChoice{Smallest: true})
	refusal(t, err, "TWIN", "cannot be told apart", "one serial", "have the provider replace the disk, then `starter retry")
	_, err = plan.Choose(append(twins, disk("sdc", "OTHER", gb)), run.DiskChoice{Smallest: true})
	refusal(t, err, "fits 3 disks")
	f, _ := fault.As(err)
	if strings.Contains(f.Remedy, "TWIN") || !strings.Contains(f.Remedy, "OTHER") {
		t.Errorf("the remedy offers %q", f.Remedy)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	a, b := disk("sda", "A", gb), disk("sdb", "B", gb)
	swapped := []api.Disk{b, a}
	swapped[0].Name, swapped[1].Name = "sda", "sdb"
	got, err := plan.Resolve(swapped, a.Identity())
	if err != nil || got.Name != "sdb" || got.Serial != "A" {
		t.Errorf("after the names were swapped: %+v, %v", got, err)
	}
	nameless := api.Disk{Name: "sdz", Size: gb, SectorSize: 512}
	for name, tt := range map[string]struct {
		disks []api.Disk
		want  run.Disk
		says  string
	}{
		"gone":            {[]api.Disk{b}, a.Identity(), "not in the machine"},
		"grown":           {[]api.Disk{disk("sda", "A", 2*gb)}, a.Identity(), "not in the machine"},
		"other WWN":       {[]api.Disk{{Name: "sda", Serial: "A", WWN: "x", Size: gb}}, a.Identity(), "not in the machine"},
		"duplicate":       {[]api.Disk{a, disk("sdb", "A", gb)}, a.Identity(), "cannot be told apart"},
		"without an ID":   {[]api.Disk{nameless}, nameless.Identity(), "neither serial nor WWN"},
		"no disks at all": {nil, a.Identity(), "shows no disk"},
	} {
		_, err := plan.Resolve(tt.disks, tt.want)
		t.Log(name, err)
		refusal(t, err, tt.says)
	}
}

func TestSecondary(t *testing.T) {
	t.Parallel()
	a, b := disk("sda", "A", gb), disk("sdb", "B", gb)
	stick := disk("sdc", "C", gb)
	stick.Removable = true
	disks := []api.Disk{a, b, stick}
	if got, err := plan.Secondary(disks, a, run.Keep); err != nil || len(got) != 0 {
		t.Errorf("keep: %v, %v", got, err)
	}
	if got, err := plan.Secondary(disks, a, run.Blank); err != nil || len(got) != 1 || got[0].Serial != "B" {
		t.Errorf("blank: %v, %v", got, err)
	}
	_, err := plan.Secondary(append(disks, api.Disk{Name: "sdd", Size: gb}), a, run.Blank)
	refusal(t, err, "neither serial nor WWN")
}

// delivered is a server as it is rented out: RAID 1 over both disks, LVM on
// one array, swap on another.
func delivered() api.Inventory {
	inv := api.Inventory{Root: api.Root{FSType: "tmpfs", InRAM: true}, Tools: []string{"mdadm", "lvm", "dmsetup"}}
	for _, d := range []api.Disk{disk("sda", "A", 100*gb), disk("sdb", "B", 100*gb)} {
		d.Table = "gpt"
		d.Parts = []api.Partition{
			{Number: 1, Name: d.Name + "1", Offset: 1 << 20, Size: gb, Signatures: []api.Signature{{Type: "linux_raid_member", Offset: 4096, Label: "rescue:0", Set: "s0"}}},
			{Number: 2, Name: d.Name + "2", Offset: 1<<20 + gb, Size: 50 * gb, Signatures: []api.Signature{{Type: "linux_raid_member", Offset: 4096, Label: "rescue:1", Set: "s1"}}},
		}
		d.Signatures = []api.Signature{{Type: "gpt", Offset: 512}}
		d.Holders = []api.Holder{
			{Kind: api.HolderSwap, Name: "md0", Device: "md0"},
			{Kind: api.HolderMount, Name: "/mnt", Device: "dm-0"},
			{Kind: api.HolderMount, Name: "/mnt/boot", Device: "dm-1"},
			{Kind: api.HolderMD, Name: "md0", Device: d.Name + "1"},
			{Kind: api.HolderLVM, Name: "vg0/root", Device: "md1"},
			{Kind: api.HolderLVM, Name: "vg0/boot", Device: "md1"},
			{Kind: api.HolderMD, Name: "md1", Device: d.Name + "2"},
		}
		inv.Disks = append(inv.Disks, d)
	}
	return inv
}

func both(inv api.Inventory) api.DiskPrepSpec {
	return api.DiskPrepSpec{System: inv.Disks[0].Identity(), Secondary: []run.Disk{inv.Disks[1].Identity()}}
}

func TestDeliveredServer(t *testing.T) {
	t.Parallel()
	inv := delivered()
	p, err := plan.DiskPrep(inv, both(inv))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Steps {
		name := s.Target
		if s.Disk != nil {
			name = s.Disk.Serial
		}
		got = append(got, string(s.Action)+" "+name)
	}
	want := []string{"swapoff md0", "unmount /mnt/boot", "unmount /mnt", "stop md0", "deactivate vg0/root", "deactivate vg0/boot", "stop md1",
		"wipe A", "blank A", "wipe B", "blank B"}
	if !slices.Equal(got, want) {
		t.Errorf("steps\n%q, want\n%q", got, want)
	}
	for _, s := range p.Steps {
		for _, r := range s.Ranges {
			if r.Offset < 34*512 || r.Offset+r.Length > int64(s.Disk.Size)-33*512 || r.Offset%512 != 0 || r.Length%512 != 0 || r.Length <= 0 {
				t.Errorf("%s zeroes %+v: the table's place or off the disk", s, r)
			}
		}
	}
	if text := p.String(); !strings.Contains(text, "mdadm --stop /dev/md1") || !strings.Contains(text, "lvm lvchange --activate n vg0/root") {
		t.Errorf("the plan does not show its tools:\n%s", text)
	}
}

// TestHoldersOnHolders stops what lies on top first, whatever the order of
// the disks.
func TestHoldersOnHolders(t *testing.T) {
	t.Parallel()
	inv := delivered()
	top := api.Holder{Kind: api.HolderDM, Name: "crypt", Device: "md9"}
	mid := api.Holder{Kind: api.HolderMD, Name: "md9", Device: "md1"}
	inv.Disks[0].Holders = []api.Holder{top, mid, {Kind: api.HolderMD, Name: "md1", Device: "sda2"}}
	inv.Disks[1].Holders = []api.Holder{top, mid}
	for range 2 {
		slices.Reverse(inv.Disks)
		p, err := plan.DiskPrep(inv, both(inv))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range p.Steps[:3] {
			got = append(got, s.Target)
		}
		if !slices.Equal(got, []string{"crypt", "md9", "md1"}) {
			t.Errorf("order %q", got)
		}
	}
}

func TestCleanMachine(t *testing.T) {
	t.Parallel()
	inv := delivered()
	for i := range inv.Disks {
		d := &inv.Disks[i]
		d.Holders, d.Parts, d.Blank = nil, nil, true
		d.Signatures = []api.Signature{{Type: "gpt", Offset: 512}, {Type: "PMBR", Offset: 510}, {Type: "gpt", Offset: d.Size - 512}}
	}
	p, err := plan.DiskPrep(inv, both(inv))
	if err != nil || !p.Clean() || !strings.Contains(p.String(), "nothing to do") {
		t.Errorf("plan %v, %v", p, err)
	}
	inv.Disks[1].Signatures = append(inv.Disks[1].Signatures, api.Signature{Type: "linux_raid_member", Offset: 4096})
	if p, err = plan.DiskPrep(inv, both(inv)); err != nil || len(p.Steps) != 1 || p.Steps[0].Disk.Serial != "B" {
		t.Errorf("with one stale superblock: %v, %v", p, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	first := func(inv api.Inventory) api.DiskPrepSpec { return api.DiskPrepSpec{System: inv.Disks[0].Identity()} }
	free := func(inv *api.Inventory) {
		for i := range inv.Disks {
			inv.Disks[i].Holders, inv.Disks[i].Parts = nil, nil
		}
	}
	for name, tt := range map[string]struct {
		change func(inv *api.Inventory)
		spec   func(inv api.Inventory) api.DiskPrepSpec
		says   []string
	}{
		"arrays on a kept disk": {func(*api.Inventory) {}, first, []string{"md md0", "md md1", "volume group vg0", "kept disk B"}},
		"sets that are not active": {func(inv *api.Inventory) {
			for i := range inv.Disks {
				inv.Disks[i].Holders = nil
			}
		}, first, []string{"rescue:0 s0", "rescue:1 s1", "kept disk B"}},
		"META on a kept disk": {func(inv *api.Inventory) {
			free(inv)
			inv.Disks[1].Parts = []api.Partition{{Number: 4, Label: "META"}, {Number: 5, Label: "STATE"}}
		}, first, []string{"partition 4 named META", "partition 5 named STATE", "kept disk B"}},
		"root on the disk": {func(inv *api.Inventory) { inv.Root = api.Root{FSType: "ext4", Disks: []string{"sdb"}} }, both, []string{"running system lies on the disk B"}},
		"root by its mount": {func(inv *api.Inventory) {
			inv.Disks[0].Holders = append(inv.Disks[0].Holders, api.Holder{Kind: api.HolderMount, Name: "/", Device: "sda3"})
		}, both, []string{"running system lies on the disk A"}},
		"root unknown": {func(inv *api.Inventory) { inv.Root = api.Root{FSType: "overlay", Source: "o"} }, both, []string{"cannot be told"}},
		"tools":        {func(inv *api.Inventory) { inv.Tools = []string{"dmsetup"} }, both, []string{"mdadm is needed to release md0, md1", "lvm is needed to release vg0/root, vg0/boot"}},
		"other holder": {func(inv *api.Inventory) {
			inv.Disks[0].Holders = append(inv.Disks[0].Holders, api.Holder{Kind: api.HolderOther, Name: "bcache0", Device: "sda9"})
		}, both, []string{"bcache0"}},
		"odd sectors": {func(inv *api.Inventory) { inv.Disks[0].SectorSize = 520 }, both, []string{"520 bytes"}},
		"tiny":        {func(inv *api.Inventory) { inv.Disks[0].Size = 1 << 20 }, both, []string{"too small"}},
		"several disks": {func(*api.Inventory) {}, func(inv api.Inventory) api.DiskPrepSpec {
			return api.DiskPrepSpec{System: run.Disk{Serial: "X"}, Secondary: []run.Disk{{Serial: "Y"}}}
		}, []string{"2 things", "disk X", "disk Y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inv := delivered()
			tt.change(&inv)
			p, err := plan.DiskPrep(inv, tt.spec(inv))
			refusal(t, err, tt.says...)
			if len(p.Steps) > 0 {
				t.Error("a refusal came with steps")
			}
		})
	}
}
