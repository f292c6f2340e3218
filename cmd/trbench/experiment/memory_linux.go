package experiment

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// availableMemory is the memory that a program may take without others being swapped out, bytes, within the limit of
// its control group; 0 where the kernel does not say.
func availableMemory() int64 {
	available := memAvailable()
	limit, used := number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current")
	if limit > 0 {
		available = min(available, max(0, limit-used))
	}
	return available
}

func memAvailable() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// number is what a file of one number holds; 0 where it is no number, such as max.
func number(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}
