package plan

import "github.com/ironlot/ironlot/internal/run"

// What a person can do about a disk. All of it is in one place, since what the
// write phase says of the system disk must fit what disk-prep does with it as
// one of the others.
const (
	// Replace is what remains for disks that no rule of a lot file can name.
	Replace = "have the provider replace the disk, then `starter retry LOT NODE --from reboot-rescue`"

	nameAnother = "name another one of the server, or the one that the provider puts in its place, by its serial in the lot file's systemDisk"
	giveAnother = "give that with `starter retry LOT NODE --batch LOT.YAML --another-disk`"

	// AnotherDisk is for a system disk that works and does not fit: the run
	// keeps to the disk that it has chosen until the lot file names another.
	AnotherDisk = nameAnother + ", and " + giveAnother

	// FailingSystem is for a system disk that fails. While it is in the server
	// it is one of the others, which disk-prep would blank in vain.
	FailingSystem = nameAnother + ", set `secondaryDisks: keep` for this node as long as the failing disk is in the server " +
		"(it leaves all other disks as they are), and " + giveAnother

	// FailingSecondary is for another disk that fails. It is never passed over
	// by itself: what is on it may be data that somebody wants gone.
	FailingSecondary = "to install without it, set `secondaryDisks: keep` for this node in the lot file, which leaves all disks but the system disk as they are, " +
		"and give that with " + run.RetryWithFile + "; to have it erased as well, " + Replace
)
