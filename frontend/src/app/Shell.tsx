import { AppShell, Burger, Group, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Suspense, useEffect } from "react";
import { Link, Outlet, useLocation } from "react-router";
import { Brand } from "../brand/Brand";
import { LoadingCards } from "../shared/LoadingCards";
import { ColorSchemeToggle } from "./ColorSchemeToggle";
import { LiveBadge } from "./LiveBadge";
import { Navigation } from "./Navigation";
import { OnBehalfBanner } from "./OnBehalfBanner";
import classes from "./Shell.module.css";
import { TenantSwitcher } from "./TenantSwitcher";
import { UserMenu } from "./UserMenu";

export function Shell() {
  const [open, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page closes the menu of small screens
  useEffect(close, [pathname, close]);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 216, breakpoint: "sm", collapsed: { mobile: !open } }}
      padding={{ base: "md", sm: "xl" }}
    >
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={open}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={open ? "Close the menu" : "Open the menu"}
            />
            <UnstyledButton
              component={Link}
              to="/"
              className={classes.brand}
              aria-label="Veneer: to the first page"
            >
              <Brand />
            </UnstyledButton>
          </Group>
          <Group gap="xs" wrap="nowrap" miw={0}>
            <TenantSwitcher />
            <ColorSchemeToggle />
            <UserMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Pages">
        <AppShell.Section grow style={{ overflowY: "auto" }}>
          <Navigation />
        </AppShell.Section>
        <LiveBadge />
      </AppShell.Navbar>
      <AppShell.Main className={classes.main}>
        <div className={classes.page}>
          <OnBehalfBanner />
          <Suspense fallback={<LoadingCards />}>
            <Outlet />
          </Suspense>
        </div>
      </AppShell.Main>
    </AppShell>
  );
}
