package cli

import (
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/resource"
)

// LimitOf names the holder of a limit, and the project and resource group that it is limited to.
func LimitOf(scope, holder, within, on string) string {
	text := strings.TrimSpace(scope + " " + holder)
	if within != "" {
		text += " within " + within
	}
	if on != "" {
		text += " on " + on
	}
	return text
}

// overLimits lists all limits that a request exceeds.
func overLimits(list []client.LimitReached) *output.Table {
	t := output.NewTable("WHAT", "USED", "ASKED FOR", "LIMIT", "POLICY", "OF")
	for _, l := range list {
		t.Row(l.What, LimitAmount(l.What, l.Used), LimitAmount(l.What, l.Requested), LimitAmount(l.What, l.Limit), l.Policy,
			LimitOf(l.Scope.String(), l.Holder, l.WithinProject, l.ResourceGroup))
	}
	return t
}

// LimitAmount formats an amount of a limit for people.
func LimitAmount(what, amount string) string {
	n, err := strconv.ParseInt(amount, 10, 64)
	slot := strings.TrimPrefix(what, "pending ")
	switch {
	case err != nil:
		return amount
	case what == "session lifetime" || what == "idle timeout":
		return Seconds(int(n))
	case what == "scope bytes" || what == "disk bytes" || resource.KindOf(slot) == resource.Bytes:
		return output.Bytes(n)
	}
	return amount
}
