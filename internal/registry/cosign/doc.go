// Package cosign verifies signatures of images with public keys, in the formats in which cosign stores
// them: simple signing below a tag, and bundles that refer to the image. It knows no certificates and no
// transparency log: keyless signatures do not count.
package cosign
