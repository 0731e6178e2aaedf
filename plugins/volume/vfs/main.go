// Command vfs is the volume plugin for a plain directory of any mounted file
// system: scopes are directories, capacity comes from statfs, usage from a
// walk. Limits are cooperative: the proxy refuses uploads past them, nothing
// stops a container.
package main

import "github.com/berthhq/berth/plugins/volume"

func main() { volume.Serve(newPlugin()) }
