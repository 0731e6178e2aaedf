// Package prepull brings images to agents before sessions need them: once, with a task, or permanently, for images that
// the agents of a resource group keep. The leading manager runs both.
package prepull
