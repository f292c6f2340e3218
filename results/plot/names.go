package plot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/results"
)

// distinguish splits what groups are into what all share, for the subtitle, and a title each of what is its own.
func distinguish(groups []results.Group) (common string, titles []string) {
	shared := func(of func(*results.Group) string) bool {
		for i := range groups {
			if of(&groups[i]) != of(&groups[0]) {
				return false
			}
		}
		return true
	}
	all, own := groups[0], make([]results.Group, len(groups))
	all.Workload = ""
	copy(own, groups)
	for _, field := range []func(*results.Group) *string{
		func(g *results.Group) *string { return &g.Algorithm },
		func(g *results.Group) *string { return &g.Pair },
		func(g *results.Group) *string { return &g.Arrival },
	} {
		if shared(func(g *results.Group) string { return *field(g) }) {
			for i := range own {
				*field(&own[i]) = ""
			}
		} else {
			*field(&all) = ""
		}
	}
	all.Axes = slices.DeleteFunc(slices.Clone(all.Axes), func(a results.Axis) bool {
		return !shared(func(g *results.Group) string {
			return strconv.FormatBool(slices.Contains(g.Axes, a))
		})
	})
	for i := range own {
		own[i].Axes = slices.DeleteFunc(slices.Clone(own[i].Axes), func(a results.Axis) bool {
			return slices.Contains(all.Axes, a)
		})
		title := orAll(own[i].Workload)
		if rest := own[i].Subtitle(); rest != "" {
			title += "\n" + rest
		}
		titles = append(titles, title)
	}
	common = all.Subtitle()
	if n := commonConcurrency(groups); n > 0 {
		common = joinParts(common, fmt.Sprintf("%d at a time", n))
	}
	return common, titles
}

// commonConcurrency is the one concurrency of groups; 0 where there are several.
func commonConcurrency(groups []results.Group) int {
	n := groups[0].Points[0].Concurrency
	for i := range groups {
		if counts := groups[i].Concurrencies(); len(counts) != 1 || counts[0] != n {
			return 0
		}
	}
	return n
}

func orAll(workload string) string {
	if workload == "" {
		return "all requests"
	}
	return workload
}

// fileNames gives each group a name that is fit for a file and different from the others'.
func fileNames(groups []results.Group) []string {
	names := make([]string, len(groups))
	for i := range groups {
		if names[i] != "" {
			continue
		}
		var same []results.Group
		var places []int
		for j := range groups {
			if groups[j].Workload == groups[i].Workload {
				same, places = append(same, groups[j]), append(places, j)
			}
		}
		_, titles := distinguish(same)
		for k, place := range places {
			base := slug(titles[k])
			name := base
			for n := 2; slices.Contains(names, name); n++ {
				name = base + "-" + strconv.Itoa(n)
			}
			names[place] = name
		}
	}
	return names
}

// slugLetters bounds a name: file systems stop at 255 bytes, readers earlier.
const slugLetters = 80

// slug keeps letters, digits and dots, and puts one dash for all between.
func slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	name = strings.Trim(name[:min(len(name), slugLetters)], "-.")
	if name == "" {
		return "x"
	}
	return name
}
