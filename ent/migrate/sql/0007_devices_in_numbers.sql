ALTER TABLE "devices" ADD COLUMN "pci_address" character varying NOT NULL DEFAULT '', ADD COLUMN "memory_bytes" bigint NOT NULL DEFAULT 0, ADD COLUMN "processing_units" bigint NOT NULL DEFAULT 0;
