// Command trbench answers what token-level routing between language models costs and gains.
package main

import (
	"os"

	"github.com/trbench/trbench/cmd/trbench/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Stdout, os.Stderr)) }
