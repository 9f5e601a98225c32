import { Button } from "@mantine/core";
import { IconMapOff } from "@tabler/icons-react";
import { Link, useRouteError } from "react-router";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { useDocumentName } from "../shared/useDocumentName";

export function NotFoundPage() {
  useDocumentName("Not found");
  return (
    <EmptyState
      icon={IconMapOff}
      title="No such page"
      action={
        <Button component={Link} to="/" mt="sm">
          To the first page
        </Button>
      }
    >
      The address may be mistyped, or the page is not yours to see.
    </EmptyState>
  );
}

export function PageFailed() {
  const error = useRouteError();
  return (
    <ErrorState
      error={error}
      what="This page failed to open"
      onRetry={() => window.location.reload()}
    />
  );
}
