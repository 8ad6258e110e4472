package simulated

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/ironlot/ironlot/internal/lab/layout"
)

// Partition names of the delivered system; they follow the layout in the
// provider's answers (ESP and swap, /boot and / on RAID 1).
const (
	deliveredESP  = "uefi"
	deliveredSwap = "swap"
	deliveredBoot = "boot"
	deliveredRoot = "root"
)

// Where the md superblock of version 1.2 lies in a member, and where the
// array's data begins behind it, in bytes.
const (
	mdSuperOffset = 4096
	mdDataOffset  = layout.MiB
	mdMagic       = 0xa92b4efc
)

// deliver puts on the disks what the provider hands over.
func deliver(disks []*disk, what Delivered) error {
	if what == Blank {
		return nil
	}
	for i, d := range disks {
		if err := deliverDisk(d, i, len(disks), what); err != nil {
			return err
		}
	}
	return nil
}

func deliverDisk(d *disk, role, disks int, what Delivered) error {
	small := d.spec.Size / 16 / layout.MiB * layout.MiB
	err := layout.Create(d.f, d.spec.Size, d.spec.Serial, []layout.Part{
		{Name: deliveredESP, Type: layout.TypeEFI, Size: small},
		{Name: deliveredSwap, Type: layout.TypeLinux, Size: small},
		{Name: deliveredBoot, Type: layout.TypeRAID, Size: small},
		{Name: deliveredRoot, Type: layout.TypeRAID},
	})
	if err != nil {
		return err
	}
	for _, p := range layout.Read(d.f, d.spec.Size) {
		if err := fill(d, p, role, disks, what); err != nil {
			return err
		}
	}
	return nil
}

func fill(d *disk, p layout.Part, role, disks int, what Delivered) error {
	put := func(data []byte, off int64) error {
		_, err := d.f.WriteAt(data, p.Offset+off)
		return err
	}
	switch p.Name {
	case deliveredSwap:
		return put([]byte("SWAPSPACE2"), 4096-10)
	case deliveredBoot, deliveredRoot:
		if err := put(mdSuperblock(p.Name, p.Size, role, disks), mdSuperOffset); err != nil {
			return err
		}
	}
	if p.Name == deliveredRoot && what == LVM {
		return put(lvmLabel(), mdDataOffset+layout.SectorSize)
	}
	if p.Name == deliveredRoot || p.Name == deliveredBoot {
		return put([]byte{0x53, 0xEF}, mdDataOffset+1024+56) // the magic of ext4
	}
	return nil
}

// mdSuperblock is struct mdp_superblock_1 of linux/raid/md_p.h, version 1.2.
func mdSuperblock(name string, size int64, role, disks int) []byte {
	sb := make([]byte, 512)
	le := binary.LittleEndian
	le.PutUint32(sb[0:], mdMagic)
	le.PutUint32(sb[4:], 1) // major version
	copy(sb[16:32], name+"-lab-array-0000")
	copy(sb[32:64], "delivered:"+name)
	le.PutUint32(sb[72:], 1) // RAID 1
	le.PutUint64(sb[80:], uint64(size-mdDataOffset)/layout.SectorSize)
	le.PutUint32(sb[92:], uint32(disks))
	le.PutUint64(sb[128:], mdDataOffset/layout.SectorSize)
	le.PutUint64(sb[136:], uint64(size-mdDataOffset)/layout.SectorSize)
	le.PutUint64(sb[144:], mdSuperOffset/layout.SectorSize)
	le.PutUint32(sb[160:], uint32(role))
	sb[168] = byte(role + 1)        // device UUID
	le.PutUint64(sb[200:], 42)      // events
	le.PutUint64(sb[208:], 1<<64-1) // resync done
	le.PutUint32(sb[220:], 128)     // slots in the role table
	for i := range 128 {
		r := uint16(0xffff) // spare
		if i < disks {
			r = uint16(i)
		}
		le.PutUint16(sb[256+2*i:], r)
	}
	le.PutUint32(sb[216:], mdChecksum(sb))
	return sb
}

// mdChecksum adds up 32-bit words and folds the carry, with its own field 0.
func mdChecksum(sb []byte) uint32 {
	var sum uint64
	for i := 0; i+4 <= len(sb); i += 4 {
		sum += uint64(binary.LittleEndian.Uint32(sb[i:]))
	}
	return uint32(sum) + uint32(sum>>32)
}

// lvmLabel is the label sector of a physical volume.
func lvmLabel() []byte {
	label := make([]byte, layout.SectorSize)
	copy(label, "LABELONE")
	binary.LittleEndian.PutUint64(label[8:], 1) // its own sector
	binary.LittleEndian.PutUint32(label[20:], 32)
	copy(label[24:], "LVM2 001")
	copy(label[32:], "labpvuuid00000000000000000000000")
	binary.LittleEndian.PutUint32(label[16:], ^crc32.Update(^uint32(0xf597a6cf), crc32.IEEETable, label[20:]))
	return label
}

// mdMember reads the superblock of a member; uuid is empty when there is none.
func mdMember(d *disk, offset int64) (uuid, name string) {
	sb := make([]byte, 512)
	if _, err := d.f.ReadAt(sb, offset+mdSuperOffset); err != nil || binary.LittleEndian.Uint32(sb) != mdMagic {
		return "", ""
	}
	return string(sb[16:32]), string(bytes.TrimRight(sb[32:64], "\x00"))
}

func hasLVMLabel(d *disk, offset int64) bool {
	sector := make([]byte, layout.SectorSize)
	_, err := d.f.ReadAt(sector, offset+mdDataOffset+layout.SectorSize)
	return err == nil && bytes.HasPrefix(sector, []byte("LABELONE"))
}
