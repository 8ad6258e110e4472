package scwapi

// partitioningSchema is the provider's default for two NVMe disks, as
// recorded: software RAID 1 over both.
const partitioningSchema = `{
  "disks": [
    {"device": "/dev/nvme0n1", "partitions": [{"label": "uefi", "number": 1, "size": 536870912, "use_all_available_space": false}, {"label": "swap", "number": 2, "size": 4294967296, "use_all_available_space": false}, {"label": "boot", "number": 3, "size": 536870912, "use_all_available_space": false}, {"label": "root", "number": 4, "size": 1915003863040, "use_all_available_space": false}]},
    {"device": "/dev/nvme1n1", "partitions": [{"label": "swap", "number": 1, "size": 4294967296, "use_all_available_space": false}, {"label": "boot", "number": 2, "size": 536870912, "use_all_available_space": false}, {"label": "root", "number": 3, "size": 1915003863040, "use_all_available_space": false}]}
  ],
  "filesystems": [
    {"device": "/dev/nvme0n1p1", "format": "fat32", "mountpoint": "/boot/efi"},
    {"device": "/dev/md0", "format": "ext4", "mountpoint": "/boot"},
    {"device": "/dev/md1", "format": "ext4", "mountpoint": "/"}
  ],
  "raids": [
    {"devices": ["/dev/nvme0n1p3", "/dev/nvme1n1p2"], "level": "raid_level_1", "name": "/dev/md0"},
    {"devices": ["/dev/nvme0n1p4", "/dev/nvme1n1p3"], "level": "raid_level_1", "name": "/dev/md1"}
  ],
  "zfs": {"pools": []}
}`
