// Package catalog lists the products that arrays can be: what runs plugins against
// all of them, or starts one by its name, imports it.
package catalog

import (
	"github.com/berthhq/berth/internal/array"
	"github.com/berthhq/berth/internal/array/netapp"
)

// Products are the makers, by the name of the plugin that each is for.
func Products() map[string]array.Maker {
	return map[string]array.Maker{
		"netapp": netapp.New,
	}
}
