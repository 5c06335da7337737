package stamp

import (
	"os"
	"syscall"
)

// changed returns the time of the last change of the inode.
func changed(info os.FileInfo) syscall.Timespec {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim
	}
	return syscall.Timespec{}
}
