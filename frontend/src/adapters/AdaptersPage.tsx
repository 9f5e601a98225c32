import { Stack } from "@mantine/core";
import { IconStack2 } from "@tabler/icons-react";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { AdapterCard } from "./AdapterCard";
import { useAdapters } from "./queries";
import { UploadPanel } from "./UploadPanel";

export function Component() {
  const { membership, session } = useTenant();
  const canWrite = membership !== null && roleCan(membership.role, "adapters:write");
  const canPin = membership !== null && roleCan(membership.role, "adapters:pin");
  return (
    <>
      <PageHeader title="Adapters">
        {`LoRA fine-tunes of ${session.base_model.name}. Each one answers under its own model name.`}
      </PageHeader>
      <Stack>
        {canWrite && <UploadPanel />}
        <AdapterList canWrite={canWrite} canPin={canPin} />
      </Stack>
    </>
  );
}

function AdapterList({ canWrite, canPin }: { canWrite: boolean; canPin: boolean }) {
  const adapters = useAdapters();
  if (adapters.isPending) return <LoadingCards />;
  if (adapters.isError) {
    return (
      <ErrorState
        error={adapters.error}
        what="The adapters could not be read"
        onRetry={() => adapters.refetch()}
      />
    );
  }
  if (adapters.data.length === 0) {
    return (
      <EmptyState icon={IconStack2} title="No adapters yet">
        {canWrite
          ? "Train one with PEFT, then drop the folder that save_pretrained wrote into the field above."
          : "Nobody in this tenant has uploaded an adapter. Your role may look, not upload."}
      </EmptyState>
    );
  }
  return adapters.data.map((adapter) => (
    <AdapterCard key={adapter.id} adapter={adapter} canWrite={canWrite} canPin={canPin} />
  ));
}
