package storage_test

import (
	"testing"

	"github.com/berthhq/berth/storage/storagetest"
)

func TestMain(m *testing.M) { storagetest.Main(m) }
