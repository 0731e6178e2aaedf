package main

import (
	"errors"
	"regexp"

	"github.com/spf13/cobra"
)

var zoneName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// zoneFlag adds the flag of the zone of a machine.
func zoneFlag(cmd *cobra.Command, zone *string) {
	const usage = "`zone` of the machine, such as a room or a data center: gateways prefer the replicas of models in their own zone"
	cmd.Flags().Func("zone", usage, func(text string) error {
		if text != "" && !zoneName.MatchString(text) {
			return errors.New("a zone has at most 63 letters, digits and . _ - and begins and ends with a letter or digit")
		}
		*zone = text
		return nil
	})
}
