// Package images has scenarios about images that reach many agents, with eight agents that are processes of
// their own, and a registry whose bytes are counted.
package images
